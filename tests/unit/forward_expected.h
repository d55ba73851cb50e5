/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_expected.h - logits of the last token of each sequence, by transformers 5.23.0. Written by
 * tests/models/forward_expected.py.
 */
#ifndef XFP_TEST_FORWARD_EXPECTED_H
#define XFP_TEST_FORWARD_EXPECTED_H

enum { FORWARD_SEQUENCES = 2, FORWARD_LENGTH = 21, FORWARD_VOCABULARY = 13 };

static const struct forward_case {
	const char *config;
	float logits[FORWARD_SEQUENCES][FORWARD_VOCABULARY];
} forward_cases[] = {
	{ "{\"model_type\": \"llama\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_heads\": "
	  "6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, \"m"
	  "ax_position_embeddings\": 32, \"rms_norm_eps\": 1e-05}",
	  {
		  { -0.9981708f, 2.327724f, -1.018858f, -1.889711f, 0.2297261f, -3.867342f, -1.112506f, 0.5868023f,
		    -4.188861f, -0.2079741f, -0.8674831f, 0.8996302f, 1.286649f },
		  { 2.295755f, -0.2708872f, -0.01275159f, -1.517175f, 0.3862741f, 0.103873f, 1.842519f, 0.5895628f,
		    -0.311634f, -0.8706486f, -0.6121492f, 3.072557f, -1.196632f },
	  } },
	{ "{\"model_type\": \"llama\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_heads\": "
	  "6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, \"m"
	  "ax_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"attention_bias\": true, \"mlp_bias\": tr"
	  "ue, \"tie_word_embeddings\": true}",
	  {
		  { -1.199244f, 1.226928f, -0.6477517f, -1.64209f, -0.3830804f, 0.3843815f, -0.6671441f, 1.390424f,
		    -0.6170007f, 1.712797f, -0.4516394f, 0.8121095f, 0.3799394f },
		  { 0.5426438f, 1.921691f, -0.4869719f, 0.5834706f, 0.7316853f, 1.502057f, -1.542558f, 1.844436f,
		    0.6934512f, 1.715225f, -1.556096f, -1.259795f, -3.480854f },
	  } },
	{ "{\"model_type\": \"llama\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_heads\": "
	  "6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, \"m"
	  "ax_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"rope_parameters\": {\"rope_type\": \"line"
	  "ar\", \"rope_theta\": 5000.0, \"factor\": 2.5}}",
	  {
		  { 3.11898f, 0.02588587f, 1.793205f, 0.3033864f, 1.348861f, 1.838349f, 1.072931f, 0.2666313f,
		    0.6559012f, -0.06018818f, 0.120835f, 0.268626f, -1.114581f },
		  { -1.489725f, -1.052719f, 2.294878f, 1.664645f, -0.2644876f, -1.076479f, 0.6298197f, -0.4809868f,
		    1.783546f, 2.600702f, -1.949235f, -2.002602f, -0.9210688f },
	  } },
	{ "{\"model_type\": \"llama\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_heads\": "
	  "6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, \"m"
	  "ax_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"rope_parameters\": {\"rope_type\": \"llam"
	  "a3\", \"rope_theta\": 500000.0, \"factor\": 8.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4."
	  "0, \"original_max_position_embeddings\": 16}}",
	  {
		  { 2.236406f, 0.3812794f, 0.7496054f, -2.163732f, 1.264048f, -2.111145f, -0.3231345f, -0.01759099f,
		    -3.218284f, -1.351751f, -0.8245665f, -0.8380027f, 0.381552f },
		  { -1.170566f, -0.8105643f, 3.436699f, 0.6745282f, 1.422345f, 0.09270906f, 0.6803828f, 0.9681874f,
		    2.014596f, 2.247233f, -1.451456f, -0.3615158f, 0.5690735f },
	  } },
	{ "{\"model_type\": \"llama\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_heads\": "
	  "6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, \"m"
	  "ax_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"rope_parameters\": {\"rope_type\": \"yarn"
	  "\", \"rope_theta\": 10000.0, \"factor\": 4.0, \"original_max_position_embeddings\": 8}}",
	  {
		  { -1.377908f, 1.88748f, -0.3302847f, -1.32557f, 0.8226567f, -2.625123f, -0.8045932f, 1.149864f,
		    -3.256019f, -0.6269413f, -0.4871598f, 0.6235728f, 0.3091113f },
		  { -0.8850061f, -1.59633f, 1.002434f, 2.12104f, -0.7881193f, -0.9901145f, -0.1442668f, -0.1867132f,
		    0.4992081f, 2.541614f, -2.253775f, -0.3910759f, -1.724426f },
	  } },
	{ "{\"model_type\": \"llama\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_heads\": "
	  "6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, \"m"
	  "ax_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"rope_parameters\": {\"rope_type\": \"yarn"
	  "\", \"rope_theta\": 10000.0, \"factor\": 4.0, \"original_max_position_embeddings\": 8, \"mscale\": "
	  "1.2, \"mscale_all_dim\": 0.8, \"truncate\": false, \"beta_fast\": 16.0, \"beta_slow\": 2.0}}",
	  {
		  { -0.8838419f, 2.001359f, -0.9524091f, -1.682891f, 0.2709939f, -3.304766f, -1.176537f, 0.7786869f,
		    -4.046643f, -0.348778f, -0.6853898f, 0.930362f, 1.124501f },
		  { 2.440458f, -0.5062869f, 0.01713467f, -1.270635f, 0.2719882f, 0.4721478f, 1.697053f, 0.6288779f,
		    -0.20487f, -1.22003f, -0.696745f, 2.861743f, -1.298174f },
	  } },
	{ "{\"model_type\": \"llama\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_heads\": "
	  "6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, \"m"
	  "ax_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"rope_parameters\": {\"rope_type\": \"long"
	  "rope\", \"rope_theta\": 10000.0, \"factor\": 4.0, \"original_max_position_embeddings\": 8, \"long_"
	  "factor\": [1.0, 1.5, 2.0, 2.5, 3.0], \"short_factor\": [1.0, 1.0, 1.25, 1.25, 1.5]}}",
	  {
		  { 0.2345964f, 0.7400548f, -0.5163461f, -1.97938f, 0.5602518f, -2.024354f, -1.230329f, 1.14779f,
		    -3.928157f, -0.5633803f, -0.3988333f, 2.260517f, 0.4975769f },
		  { -0.6818815f, -1.250091f, 2.002007f, 1.374467f, -0.1258195f, -2.311905f, -0.04484843f, -1.410926f,
		    0.6573024f, 3.172201f, -2.537595f, -1.127521f, -1.904435f },
	  } },
	{ "{\"model_type\": \"mistral\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_heads\""
	  ": 6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, "
	  "\"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"sliding_window\": 7}",
	  {
		  { -0.2266114f, 0.2810097f, 1.044877f, -1.392496f, -1.496602f, -3.086599f, 1.282207f, 1.252239f,
		    -3.154901f, 0.3500676f, -0.7572172f, -0.3700909f, -0.6051707f },
		  { -0.01998504f, -1.690858f, 0.9607483f, 1.005202f, -0.09533028f, 0.1117513f, -0.06430651f, 1.117402f,
		    1.218197f, 0.9484233f, -0.978483f, -1.013829f, -1.556203f },
	  } },
	{ "{\"model_type\": \"mixtral\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_heads\""
	  ": 6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, "
	  "\"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"num_local_experts\": 5, \"num_experts"
	  "_per_tok\": 2, \"sliding_window\": null}",
	  {
		  { -1.514037f, -0.577023f, -0.6751356f, 1.461656f, -1.36614f, -2.364026f, -1.764756f, 1.005105f,
		    -2.655212f, 0.8548003f, 0.8816923f, 0.3810085f, -0.001706011f },
		  { 1.182222f, -1.155599f, 0.1255719f, 1.546723f, 0.5489335f, -0.6295365f, 2.109852f, -1.652828f,
		    -1.065918f, -3.059215f, -0.226568f, 1.212328f, 1.969586f },
	  } },
	{ "{\"model_type\": \"qwen2\", \"hidden_size\": 20, \"num_hidden_layers\": 3, \"num_attention_heads\": "
	  "5, \"num_key_value_heads\": 5, \"head_dim\": 4, \"intermediate_size\": 22, \"vocab_size\": 13, \"ma"
	  "x_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"use_sliding_window\": true, \"sliding_wi"
	  "ndow\": 7, \"max_window_layers\": 1}",
	  {
		  { -1.701343f, -2.061148f, 0.2449336f, 1.303934f, -0.3147672f, -0.775305f, -0.8594463f, 0.4249251f,
		    0.5199133f, 0.5832215f, 0.2564223f, -0.8636827f, 1.02659f },
		  { -0.7319388f, 1.628698f, 0.9307171f, -1.576306f, -1.244552f, 0.02592066f, -1.041672f, -0.8909174f,
		    2.599234f, 0.7169062f, 2.281746f, -0.1275055f, -0.1205978f },
	  } },
	{ "{\"model_type\": \"qwen3\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_heads\": "
	  "6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, \"m"
	  "ax_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"attention_bias\": true, \"rope_theta\": "
	  "1000000.0}",
	  {
		  { -1.386206f, 1.849452f, -1.854053f, -0.6068271f, -0.4554402f, -3.085288f, -2.113606f, 0.8672519f,
		    -3.217395f, 0.1927471f, 0.2334006f, 1.68658f, -0.7872059f },
		  { 0.4765092f, -0.9046428f, 1.628523f, 0.8607913f, 0.2877592f, -0.1531904f, 0.678957f, 0.03916184f,
		    0.9061813f, -0.8796626f, -1.496748f, 0.5811675f, -1.190526f },
	  } },
	{ "{\"model_type\": \"qwen3_moe\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_head"
	  "s\": 6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13"
	  ", \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"num_experts\": 7, \"num_experts_per"
	  "_tok\": 3, \"moe_intermediate_size\": 9, \"norm_topk_prob\": true, \"decoder_sparse_step\": 1}",
	  {
		  { -1.865216f, 2.432954f, -1.693143f, 1.00592f, -0.03426219f, -3.144638f, -2.11344f, 0.7314934f,
		    -1.777125f, 0.02724147f, -0.938265f, 0.6872086f, -0.1893645f },
		  { 0.9443506f, -1.48285f, 1.58145f, 0.4718444f, 0.2899489f, -1.654977f, 0.03059074f, -0.9923781f,
		    0.2804237f, -1.7118f, -1.641677f, 0.7254469f, -0.164706f },
	  } },
	{ "{\"model_type\": \"qwen3_moe\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_head"
	  "s\": 6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13"
	  ", \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"num_experts\": 7, \"num_experts_per"
	  "_tok\": 3, \"moe_intermediate_size\": 9, \"decoder_sparse_step\": 2, \"mlp_only_layers\": [], \"us"
	  "e_sliding_window\": true, \"sliding_window\": 7}",
	  {
		  { 0.2476295f, 1.487913f, -2.096941f, -1.740352f, -1.074999f, -3.962218f, -0.2691515f, 0.6333159f,
		    -2.367451f, 0.2724914f, -1.441043f, 1.699944f, -1.005367f },
		  { 0.2360947f, -2.048109f, 1.917475f, 1.33343f, 0.2178911f, -1.40779f, 1.66905f, -1.052347f, 1.72357f,
		    0.7370253f, -2.869404f, 0.4284109f, -0.8497081f },
	  } },
	{ "{\"model_type\": \"qwen3_moe\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_head"
	  "s\": 6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13"
	  ", \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"num_experts\": 7, \"num_experts_per"
	  "_tok\": 3, \"moe_intermediate_size\": 9, \"norm_topk_prob\": true, \"mlp_only_layers\": [1], \"tie"
	  "_word_embeddings\": true}",
	  {
		  { -0.4892938f, 2.395552f, -0.03780402f, -0.8676234f, -0.3744442f, 0.7808117f, -0.1102603f, 0.9993368f,
		    -1.654063f, 0.3498801f, -1.205881f, 0.7642021f, 0.8840039f },
		  { 0.5333677f, 2.834792f, 0.5934764f, -0.04906953f, 1.78733f, 1.815679f, 0.6670808f, 0.2936327f,
		    -1.272043f, 1.712094f, -1.911524f, -0.2407121f, -1.71173f },
	  } },
	{ "{\"model_type\": \"llama\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_heads\": "
	  "3, \"num_key_value_heads\": 1, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, \"m"
	  "ax_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"hidden_act\": \"gelu\"}",
	  {
		  { -0.05051875f, -0.3728753f, 0.5508038f, -0.1700342f, -0.4700817f, 1.382031f, -0.3577552f, 0.7757542f,
		    0.6507127f, 3.536366f, 0.8488752f, 0.6697191f, -1.743602f },
		  { -0.306134f, 0.04730444f, 0.4000852f, 0.1651818f, -2.004077f, 1.287249f, -1.242898f, 2.014258f,
		    -0.279113f, -0.9261408f, -0.5813457f, 1.010719f, -2.603806f },
	  } },
	{ "{\"model_type\": \"ministral\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_head"
	  "s\": 3, \"num_key_value_heads\": 1, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13"
	  ", \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"sliding_window\": 7, \"layer_types\""
	  ": [\"sliding_attention\", \"full_attention\"]}",
	  {
		  { 0.4995522f, 1.131119f, 0.5027183f, -1.566188f, -0.3398737f, 0.2013063f, -0.5959369f, 0.5899898f,
		    0.1402633f, 2.773839f, 0.3924847f, 1.346135f, -1.224371f },
		  { 0.143661f, -0.654981f, 1.89329f, 2.306648f, 0.6030498f, -2.249631f, 1.649898f, -2.273801f,
		    0.5359474f, 2.050643f, -0.441745f, 1.985935f, -2.314965f },
	  } },
	{ "{\"model_type\": \"phi3\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_heads\": 3"
	  ", \"num_key_value_heads\": 1, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, \"ma"
	  "x_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"pad_token_id\": 0, \"sliding_window\": 7,"
	  " \"partial_rotary_factor\": 0.6}",
	  {
		  { 1.716389f, 0.8676529f, 2.717661f, 0.6059255f, 1.039902f, 0.8855203f, -2.107073f, -0.4087325f,
		    0.01677853f, -0.2619061f, -3.73425f, -3.284256f, 0.3187989f },
		  { -1.088003f, 0.1195058f, -0.04232948f, 0.8062765f, -2.629874f, 0.8345023f, 0.4158724f, 1.072517f,
		    0.4577118f, -0.08772023f, 2.517214f, -1.441531f, 1.015522f },
	  } },
	{ "{\"model_type\": \"phi3\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_heads\": 3"
	  ", \"num_key_value_heads\": 1, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, \"ma"
	  "x_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"pad_token_id\": 0, \"partial_rotary_fact"
	  "or\": 0.8, \"original_max_position_embeddings\": 16, \"rope_scaling\": {\"type\": \"longrope\", \"lo"
	  "ng_factor\": [1.0, 1.5, 2.5, 3.0], \"short_factor\": [1.0, 1.0, 1.25, 1.5]}}",
	  {
		  { 3.441832f, 0.1809499f, 1.098967f, -1.108651f, 0.02071252f, -0.8285218f, 0.4317404f, -1.343559f,
		    0.9339271f, -0.9628553f, -0.9204276f, 2.043969f, 0.5828938f },
		  { 1.691928f, -0.7444813f, 1.546321f, -1.247383f, -0.9594265f, -0.2758431f, 1.691744f, -1.041032f,
		    -0.5298498f, 1.808204f, 1.085069f, 1.877429f, 1.333384f },
	  } },
	{ "{\"model_type\": \"phi3\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_heads\": 3"
	  ", \"num_key_value_heads\": 1, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, \"ma"
	  "x_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"pad_token_id\": 0, \"original_max_positi"
	  "on_embeddings\": 24, \"rope_parameters\": {\"rope_type\": \"longrope\", \"rope_theta\": 20000.0, \"p"
	  "artial_rotary_factor\": 0.4, \"long_factor\": [1.0, 3.0], \"short_factor\": [1.0, 1.25]}}",
	  {
		  { -0.8686905f, 1.921302f, 1.848579f, 1.69119f, 0.8241588f, 1.143111f, -1.263475f, -0.4538417f,
		    0.9391289f, -1.04303f, -2.617841f, -4.184025f, 0.8873714f },
		  { -1.236921f, -0.3876138f, 0.4621957f, 0.5182062f, -1.613951f, -0.8286137f, 2.497397f, -1.88191f,
		    -0.2890566f, 2.433495f, 1.524766f, 1.103425f, 1.456226f },
	  } },
	{ "{\"model_type\": \"gemma2\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_heads\":"
	  " 3, \"num_key_value_heads\": 1, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, \""
	  "max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"sliding_window\": 7}",
	  {
		  { -0.6761274f, 3.084489f, -2.711569f, -0.2854351f, -4.050388f, 0.8267955f, -2.97905f, 7.35872f,
		    -0.5687522f, -4.784725f, 3.00426f, -4.264316f, 1.246583f },
		  { -5.108806f, 0.5333263f, 7.168733f, -4.298473f, -1.065116f, -3.466728f, 2.157576f, -2.33555f,
		    3.026831f, 0.9352193f, -4.511461f, 0.4075817f, -1.982377f },
	  } },
	{ "{\"model_type\": \"gemma2\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_heads\":"
	  " 3, \"num_key_value_heads\": 1, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, \""
	  "max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"sliding_window\": 7, \"layer_types\": ["
	  "\"full_attention\", \"sliding_attention\"], \"attn_logit_softcapping\": 2.0, \"final_logit_softca"
	  "pping\": 3.0, \"query_pre_attn_scalar\": 7, \"attention_bias\": true, \"tie_word_embeddings\": fa"
	  "lse}",
	  {
		  { -2.041213f, 2.635867f, -2.61641f, 2.349234f, -2.440632f, -1.821217f, -2.921723f, 2.327614f,
		    -0.493519f, 2.374675f, 0.3297472f, 2.357709f, -2.906912f },
		  { 2.024864f, -1.750159f, -1.237422f, -1.306895f, -0.851482f, 2.455113f, 0.4367785f, -1.084876f,
		    -0.8212662f, 0.7956485f, 0.4982782f, 2.452775f, -2.911288f },
	  } },
	{ "{\"model_type\": \"gemma3_text\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_he"
	  "ads\": 3, \"num_key_value_heads\": 1, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": "
	  "13, \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"sliding_window\": 7, \"sliding_wi"
	  "ndow_pattern\": 3, \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 8.0}, \"query_pre_attn_"
	  "scalar\": 12, \"final_logit_softcapping\": null}",
	  {
		  { 4.129826f, 4.056403f, -2.192525f, 5.037935f, -0.8636185f, 0.3211748f, 1.7449f, 4.409122f,
		    -0.1934988f, -1.68593f, 5.420916f, -0.6462694f, 0.5341771f },
		  { -2.861935f, 0.8183794f, 6.15933f, -2.350593f, 1.791167f, -1.218961f, 2.672388f, -5.520726f,
		    3.383912f, -0.545152f, -3.293333f, 0.8684382f, -2.271026f },
	  } },
	{ "{\"model_type\": \"gemma3_text\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_he"
	  "ads\": 3, \"num_key_value_heads\": 1, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": "
	  "13, \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"sliding_window\": 9, \"layer_type"
	  "s\": [\"full_attention\", \"sliding_attention\"], \"final_logit_softcapping\": 4.0, \"attention_bi"
	  "as\": true, \"rope_parameters\": {\"full_attention\": {\"rope_type\": \"linear\", \"factor\": 2.0, \"r"
	  "ope_theta\": 30000.0}, \"sliding_attention\": {\"rope_type\": \"default\", \"rope_theta\": 300.0}}}",
	  {
		  { -0.4447128f, 2.096317f, -3.114654f, -3.61111f, -0.9172384f, 2.275782f, -3.49804f, 3.539545f,
		    0.8860811f, -1.31148f, 1.635933f, -3.477273f, -1.913512f },
		  { -3.057967f, -1.906496f, 3.820009f, -2.697376f, 0.4822391f, -2.277418f, 3.576694f, -3.742993f,
		    1.970419f, 3.253968f, -1.896163f, 2.473569f, -1.109717f },
	  } },
	{ "{\"model_type\": \"qwen3_next\", \"hidden_size\": 20, \"num_hidden_layers\": 4, \"num_attention_hea"
	  "ds\": 3, \"num_key_value_heads\": 1, \"head_dim\": 16, \"vocab_size\": 13, \"max_position_embeddin"
	  "gs\": 32, \"rms_norm_eps\": 1e-05, \"linear_num_key_heads\": 2, \"linear_num_value_heads\": 6, \"l"
	  "inear_key_head_dim\": 6, \"linear_value_head_dim\": 10, \"linear_conv_kernel_dim\": 4, \"num_exp"
	  "erts\": 5, \"num_experts_per_tok\": 3, \"moe_intermediate_size\": 9, \"shared_expert_intermediat"
	  "e_size\": 7, \"intermediate_size\": 22}",
	  {
		  { 0.6464863f, -1.627209f, 2.510782f, 4.148014f, -3.078243f, 0.104079f, 1.255841f, 0.7856957f,
		    2.784233f, -1.754341f, 2.918795f, 5.991454f, -0.6722074f },
		  { -0.7341444f, 5.64604f, -0.5424109f, -3.633462f, 1.817057f, -0.5265476f, 0.4914498f, -4.147099f,
		    -0.5397096f, 0.09036449f, -0.03505124f, -3.109096f, -1.482461f },
	  } },
	{ "{\"model_type\": \"qwen3_next\", \"hidden_size\": 20, \"num_hidden_layers\": 4, \"num_attention_hea"
	  "ds\": 3, \"num_key_value_heads\": 1, \"head_dim\": 16, \"vocab_size\": 13, \"max_position_embeddin"
	  "gs\": 32, \"rms_norm_eps\": 1e-05, \"linear_num_key_heads\": 1, \"linear_num_value_heads\": 3, \"l"
	  "inear_key_head_dim\": 5, \"linear_value_head_dim\": 35, \"linear_conv_kernel_dim\": 3, \"num_exp"
	  "erts\": 5, \"num_experts_per_tok\": 3, \"moe_intermediate_size\": 9, \"shared_expert_intermediat"
	  "e_size\": 7, \"intermediate_size\": 22, \"attention_bias\": true, \"norm_topk_prob\": false, \"mlp"
	  "_only_layers\": [1], \"partial_rotary_factor\": 0.5, \"tie_word_embeddings\": true, \"layer_type"
	  "s\": [\"full_attention\", \"linear_attention\", \"full_attention\", \"linear_attention\"]}",
	  {
		  { -1.947331f, -1.534441f, 3.858961f, 2.809009f, -1.547272f, -1.788208f, -2.678029f, 2.424212f,
		    -1.630936f, -0.6373436f, 1.731395f, 0.326188f, 0.5816781f },
		  { 1.508824f, 1.33834f, -1.212466f, 0.4421551f, 1.35755f, 0.5578926f, 4.636928f, 5.067735f, -1.61223f,
		    1.456299f, 4.49018f, -0.3924152f, -2.15475f },
	  } },
	{ "{\"model_type\": \"qwen3_5_text\", \"hidden_size\": 20, \"num_hidden_layers\": 4, \"num_attention_h"
	  "eads\": 3, \"num_key_value_heads\": 1, \"head_dim\": 16, \"vocab_size\": 13, \"max_position_embedd"
	  "ings\": 32, \"rms_norm_eps\": 1e-05, \"linear_num_key_heads\": 1, \"linear_num_value_heads\": 3, "
	  "\"linear_key_head_dim\": 5, \"linear_value_head_dim\": 35, \"linear_conv_kernel_dim\": 3, \"inter"
	  "mediate_size\": 22, \"full_attention_interval\": 2, \"rope_parameters\": {\"rope_type\": \"default"
	  "\", \"rope_theta\": 10000000.0, \"partial_rotary_factor\": 0.25, \"mrope_section\": [1, 1, 0], \"m"
	  "rope_interleaved\": true}}",
	  {
		  { -0.08616211f, 0.9507256f, 0.8897285f, -0.8260769f, -1.542746f, 0.04357367f, -0.6113392f, -5.908671f,
		    -0.09278672f, -0.8461305f, -1.536838f, 1.509393f, -2.844201f },
		  { 1.983391f, 1.842443f, 4.921126f, -1.070938f, 2.242048f, -0.01926735f, 0.001885681f, -1.378827f,
		    2.30058f, -3.009563f, 4.161337f, 5.095356f, -3.276232f },
	  } },
	{ "{\"model_type\": \"qwen3_5_moe_text\", \"hidden_size\": 20, \"num_hidden_layers\": 4, \"num_attenti"
	  "on_heads\": 3, \"num_key_value_heads\": 1, \"head_dim\": 16, \"vocab_size\": 13, \"max_position_em"
	  "beddings\": 32, \"rms_norm_eps\": 1e-05, \"linear_num_key_heads\": 2, \"linear_num_value_heads\":"
	  " 6, \"linear_key_head_dim\": 6, \"linear_value_head_dim\": 10, \"linear_conv_kernel_dim\": 4, \"n"
	  "um_experts\": 5, \"num_experts_per_tok\": 3, \"moe_intermediate_size\": 9, \"shared_expert_inter"
	  "mediate_size\": 7}",
	  {
		  { -5.883708f, 0.9997405f, 1.960745f, -2.022176f, 2.220822f, -2.40139f, 1.123198f, 4.162214f,
		    1.462057f, 0.2023759f, 4.984906f, -3.292446f, 1.455083f },
		  { 0.016389f, 1.166072f, 0.6233959f, -0.7322029f, -7.186117f, -2.450937f, -0.2664825f, -2.007398f,
		    0.9319739f, -2.901921f, -0.2336336f, 0.1891891f, 1.4662f },
	  } },
	{ "{\"model_type\": \"glm4_moe\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_heads"
	  "\": 6, \"num_key_value_heads\": 2, \"head_dim\": 12, \"intermediate_size\": 22, \"vocab_size\": 13,"
	  " \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"n_routed_experts\": 8, \"num_experts"
	  "_per_tok\": 3, \"moe_intermediate_size\": 9, \"use_qk_norm\": true, \"attention_bias\": true}",
	  {
		  { -2.100308f, -0.483661f, 0.556378f, -0.6030508f, -0.4281895f, 0.830828f, 2.362702f, -1.984204f,
		    2.786583f, 2.831846f, 1.740343f, -0.5777587f, -1.002785f },
		  { 0.1622997f, -1.032547f, -2.25269f, -0.6802036f, -0.9630522f, 0.2548671f, 0.5431392f, -2.077029f,
		    1.754609f, -0.8932821f, 0.9812974f, -1.154166f, -2.561694f },
	  } },
	{ "{\"model_type\": \"glm4_moe\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_heads"
	  "\": 6, \"num_key_value_heads\": 2, \"head_dim\": 12, \"intermediate_size\": 22, \"vocab_size\": 13,"
	  " \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"n_routed_experts\": 8, \"num_experts"
	  "_per_tok\": 3, \"moe_intermediate_size\": 9, \"first_k_dense_replace\": 0, \"n_group\": 4, \"topk_"
	  "group\": 2, \"n_shared_experts\": 2, \"norm_topk_prob\": false, \"routed_scaling_factor\": 2.5, \""
	  "partial_rotary_factor\": 0.84}",
	  {
		  { -2.66805f, -1.618716f, 2.296355f, 1.410559f, -1.841451f, 0.03717883f, 2.726278f, -0.5646978f,
		    -0.4978542f, 1.264051f, 1.556432f, -4.022162f, 0.856639f },
		  { 1.827453f, 2.047074f, -1.345024f, -2.741157f, 0.7096298f, -2.536847f, -1.684749f, 0.1828631f,
		    -1.525983f, 2.098071f, -0.7455544f, 2.480688f, -1.173002f },
	  } },
	{ "{\"model_type\": \"minimax_m2\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_hea"
	  "ds\": 6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 1"
	  "3, \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"num_local_experts\": 7, \"num_expe"
	  "rts_per_tok\": 3, \"rotary_dim\": 6}",
	  {
		  { -1.531484f, -0.6426474f, -0.2247266f, 1.320197f, -0.6759756f, -2.02445f, -0.3252062f, -0.4115723f,
		    -2.742632f, 0.2960632f, -0.3972685f, 0.7510509f, 0.418702f },
		  { -0.4669399f, -2.085248f, 1.585051f, 1.30118f, -0.2175422f, -1.246208f, 0.1866102f, -1.001508f,
		    -0.1020481f, -1.930622f, -2.396672f, -1.444367f, -0.3446942f },
	  } },
	{ "{\"model_type\": \"gpt_oss\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_heads\""
	  ": 3, \"num_key_value_heads\": 1, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, "
	  "\"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"num_local_experts\": 5, \"sliding_win"
	  "dow\": 7, \"num_experts_per_tok\": 2, \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0, \"t"
	  "runcate\": false, \"original_max_position_embeddings\": 8}}",
	  {
		  { 1.477567f, -0.9559489f, 0.481546f, 0.3245156f, 0.8900594f, 1.005333f, -3.429131f, 0.4376766f,
		    -0.2803709f, 1.163542f, 0.01785126f, -0.6291574f, -0.1478339f },
		  { 2.884819f, -2.421128f, -1.011814f, -0.05739618f, -1.289714f, 1.151198f, 0.01299111f, -0.7597659f,
		    -0.3991326f, -0.5561947f, 0.7314019f, 3.603287f, -2.290245f },
	  } },
	{ "{\"model_type\": \"gpt_oss\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_heads\""
	  ": 3, \"num_key_value_heads\": 1, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, "
	  "\"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"num_local_experts\": 5, \"sliding_win"
	  "dow\": 7, \"num_experts_per_tok\": 3, \"attention_bias\": false, \"swiglu_alpha\": 1.2, \"swiglu_l"
	  "imit\": 0.4, \"layer_types\": [\"full_attention\", \"sliding_attention\"], \"rope_parameters\": {\"r"
	  "ope_type\": \"default\", \"rope_theta\": 5000.0}}",
	  {
		  { -0.4296917f, -0.02945844f, -0.7539564f, 1.108062f, -0.3902652f, -0.4220473f, -1.727872f, -1.745766f,
		    0.8648489f, 0.2321868f, -1.34569f, -0.4853093f, -3.188189f },
		  { 0.6105357f, -0.9826775f, -0.02774409f, 0.7329769f, -0.7619541f, -0.9415812f, -0.5804861f,
		    -0.6904357f, -0.1718181f, -1.87037f, -1.712327f, 0.1048212f, -3.48039f },
	  } },
	{ "{\"model_type\": \"deepseek_v2\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_he"
	  "ads\": 3, \"num_key_value_heads\": 3, \"intermediate_size\": 22, \"vocab_size\": 13, \"max_positio"
	  "n_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"n_routed_experts\": 8, \"num_experts_per_tok\": 3,"
	  " \"moe_intermediate_size\": 9, \"q_lora_rank\": null, \"kv_lora_rank\": 10, \"qk_rope_head_dim\": "
	  "6, \"qk_nope_head_dim\": 4, \"v_head_dim\": 9, \"attention_bias\": true, \"first_k_dense_replace\""
	  ": 1}",
	  {
		  { 1.7109f, 0.6974721f, -1.539316f, -1.679623f, -0.851716f, -0.0824762f, -1.906368f, -0.125036f,
		    0.6993527f, -1.266104f, -0.1596739f, 0.698841f, -1.523849f },
		  { -2.754065f, -0.7973494f, 1.137342f, 2.270307f, -0.8087061f, 2.334749f, -1.174608f, 3.429034f,
		    2.426297f, -0.1600283f, 1.064555f, -1.498212f, -0.6164373f },
	  } },
	{ "{\"model_type\": \"deepseek_v2\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_he"
	  "ads\": 3, \"num_key_value_heads\": 3, \"intermediate_size\": 22, \"vocab_size\": 13, \"max_positio"
	  "n_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"n_routed_experts\": 8, \"num_experts_per_tok\": 3,"
	  " \"moe_intermediate_size\": 9, \"q_lora_rank\": 7, \"kv_lora_rank\": 10, \"qk_rope_head_dim\": 6, "
	  "\"qk_nope_head_dim\": 4, \"v_head_dim\": 9, \"topk_method\": \"group_limited_greedy\", \"n_group\": "
	  "4, \"topk_group\": 2, \"routed_scaling_factor\": 4.0, \"first_k_dense_replace\": 1, \"rope_scalin"
	  "g\": {\"rope_type\": \"yarn\", \"rope_theta\": 10000.0, \"factor\": 4.0, \"original_max_position_emb"
	  "eddings\": 8, \"mscale\": 0.707, \"mscale_all_dim\": 0.707}}",
	  {
		  { 1.661372f, 0.393892f, -0.3075639f, -0.4162731f, -0.8562725f, 1.129775f, -2.619135f, 0.7203664f,
		    0.8233302f, 0.1070443f, 0.5032452f, 0.342313f, -1.482778f },
		  { 1.569708f, 0.2451365f, -1.640015f, -0.8445042f, -0.7365237f, 0.404767f, -1.922118f, 0.6463662f,
		    1.653416f, -2.644208f, -0.732024f, -0.6929601f, -1.524088f },
	  } },
	{ "{\"model_type\": \"deepseek_v3\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_he"
	  "ads\": 3, \"num_key_value_heads\": 3, \"intermediate_size\": 22, \"vocab_size\": 13, \"max_positio"
	  "n_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"n_routed_experts\": 8, \"num_experts_per_tok\": 3,"
	  " \"moe_intermediate_size\": 9, \"q_lora_rank\": 7, \"kv_lora_rank\": 10, \"qk_rope_head_dim\": 6, "
	  "\"qk_nope_head_dim\": 4, \"v_head_dim\": 9, \"n_group\": 4, \"topk_group\": 2, \"first_k_dense_repl"
	  "ace\": 1, \"rope_scaling\": {\"rope_type\": \"yarn\", \"rope_theta\": 10000.0, \"factor\": 4.0, \"orig"
	  "inal_max_position_embeddings\": 8, \"mscale\": 1.0, \"mscale_all_dim\": 1.0}}",
	  {
		  { 2.370874f, -0.1231151f, -0.8563401f, -0.6609759f, -0.9157019f, 1.645299f, -1.325648f, 0.4445945f,
		    0.539767f, -1.020891f, 0.8025552f, 0.5393321f, -0.4972354f },
		  { 2.517644f, -0.05992037f, -0.918798f, -0.7345634f, -0.6101484f, 0.9538553f, -2.233412f, 0.6680616f,
		    1.282296f, -2.625593f, -0.4390945f, -0.1039749f, -1.663045f },
	  } },
	{ "{\"model_type\": \"deepseek_v3\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_he"
	  "ads\": 3, \"num_key_value_heads\": 3, \"intermediate_size\": 22, \"vocab_size\": 13, \"max_positio"
	  "n_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"n_routed_experts\": 8, \"num_experts_per_tok\": 3,"
	  " \"moe_intermediate_size\": 9, \"q_lora_rank\": 7, \"kv_lora_rank\": 10, \"qk_rope_head_dim\": 6, "
	  "\"qk_nope_head_dim\": 4, \"v_head_dim\": 9, \"n_group\": 1, \"topk_group\": 1, \"first_k_dense_repl"
	  "ace\": 0, \"rope_interleave\": false, \"attention_bias\": true, \"rope_scaling\": {\"rope_type\": \""
	  "yarn\", \"rope_theta\": 10000.0, \"factor\": 4.0, \"original_max_position_embeddings\": 8, \"mscal"
	  "e\": 1.0, \"mscale_all_dim\": 0.5}}",
	  {
		  { -3.322459f, 2.21572f, -0.8256347f, 0.5546011f, 0.4372039f, -1.812595f, 0.2765586f, -2.881187f,
		    1.417388f, 2.000938f, -1.202076f, -0.9265807f, -0.04501679f },
		  { -3.490074f, 1.838027f, -0.8309103f, -0.3771625f, -0.2173545f, -2.715779f, 0.08858779f, -2.805752f,
		    1.192697f, 3.221781f, -0.9508387f, -1.145548f, 0.6269188f },
	  } },
	{ "{\"model_type\": \"glm4_moe_lite\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_"
	  "heads\": 3, \"num_key_value_heads\": 3, \"intermediate_size\": 22, \"vocab_size\": 13, \"max_posit"
	  "ion_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"n_routed_experts\": 8, \"num_experts_per_tok\": "
	  "3, \"moe_intermediate_size\": 9, \"q_lora_rank\": 7, \"kv_lora_rank\": 10, \"qk_rope_head_dim\": 6"
	  ", \"qk_nope_head_dim\": 4, \"v_head_dim\": 9, \"mlp_layer_types\": [\"sparse\", \"dense\"]}",
	  {
		  { -4.087238f, 1.632422f, -0.3679264f, 1.770724f, 0.9977064f, -0.4638081f, 0.3615445f, -2.394919f,
		    1.733289f, 0.8006305f, -0.9617907f, -1.327878f, 0.1937607f },
		  { -3.865788f, 1.738275f, -1.063823f, 0.6945865f, 0.01880596f, -2.168795f, -0.3790587f, -2.959433f,
		    1.369909f, 3.498207f, -0.442888f, -0.7426917f, -0.1372648f },
	  } },
	{ "{\"model_type\": \"ernie4_5\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_heads"
	  "\": 6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13,"
	  " \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"use_bias\": true, \"rope_parameters\""
	  ": {\"rope_type\": \"yarn\", \"rope_theta\": 10000.0, \"factor\": 4.0, \"original_max_position_embed"
	  "dings\": 8}}",
	  {
		  { 0.6865584f, 1.686755f, -0.1411814f, -0.3672974f, 0.2794021f, -1.570426f, -1.023973f, -0.5635107f,
		    -1.249725f, 1.868975f, 0.09471976f, 1.230518f, 0.1979212f },
		  { 0.6061719f, 0.4565069f, -0.9970128f, 0.2968227f, -0.8249686f, 1.396788f, -1.976095f, 1.539673f,
		    0.467438f, 0.4639137f, -0.8620576f, 0.8765627f, -1.2711f },
	  } },
	{ "{\"model_type\": \"ernie4_5_moe\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_h"
	  "eads\": 6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\":"
	  " 13, \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"moe_num_experts\": 7, \"moe_k\": "
	  "3, \"moe_intermediate_size\": 9}",
	  {
		  { 1.346116f, 0.7582158f, -0.485477f, 1.495293f, 0.4561809f, 0.6217024f, 0.6981266f, 0.8065066f,
		    2.119158f, 1.607291f, -2.006756f, -1.328503f, -1.054161f },
		  { 1.243969f, -0.2666782f, -0.01015936f, 1.923194f, 1.377757f, 1.743762f, -1.364537f, 1.115248f,
		    2.200518f, 0.7911113f, -1.926642f, 0.7914663f, -3.874857f },
	  } },
	{ "{\"model_type\": \"ernie4_5_moe\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_h"
	  "eads\": 6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\":"
	  " 13, \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"moe_num_experts\": 7, \"moe_k\": "
	  "3, \"moe_intermediate_size\": 9, \"moe_num_shared_experts\": 0, \"moe_layer_start_index\": 0, \"m"
	  "oe_layer_end_index\": 1, \"moe_layer_interval\": 2, \"moe_norm_min\": 0.9, \"tie_word_embeddings"
	  "\": false}",
	  {
		  { 1.305458f, -1.9646f, 2.171093f, -0.3522384f, 0.9244976f, -2.070887f, 0.9463673f, 0.2609052f,
		    -0.7028022f, -2.094768f, -1.93434f, 0.3563943f, 0.2599639f },
		  { 0.7128496f, -1.880903f, 2.005651f, 1.401095f, -0.2388721f, 0.9706957f, -0.01956251f, -0.3127072f,
		    0.8685563f, 1.424311f, -0.696182f, -1.358047f, -0.6439001f },
	  } },
	{ "{\"model_type\": \"llama4_text\", \"hidden_size\": 30, \"num_hidden_layers\": 4, \"num_attention_he"
	  "ads\": 6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": "
	  "13, \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"intermediate_size_mlp\": 17, \"nu"
	  "m_local_experts\": 5, \"num_experts_per_tok\": 1, \"attention_chunk_size\": 8, \"floor_scale\": 3"
	  ", \"interleave_moe_layer_step\": 2}",
	  {
		  { 0.3447387f, 1.10571f, -1.208378f, 1.787052f, 0.1537416f, -4.426161f, -4.097262f, -0.7431253f,
		    -0.1133553f, 1.281034f, 0.3530142f, -0.3333966f, -1.306534f },
		  { 0.227314f, 1.592891f, -2.514518f, -0.2177144f, 0.4773912f, -3.486163f, -0.8580732f, -2.12689f,
		    -0.9575186f, -3.511533f, -1.209588f, 2.3331f, 0.7289826f },
	  } },
	{ "{\"model_type\": \"llama4_text\", \"hidden_size\": 30, \"num_hidden_layers\": 4, \"num_attention_he"
	  "ads\": 6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": "
	  "13, \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"intermediate_size_mlp\": 17, \"nu"
	  "m_local_experts\": 5, \"num_experts_per_tok\": 2, \"attention_chunk_size\": 8, \"floor_scale\": 3"
	  ", \"no_rope_layers\": [0, 1, 0, 1], \"use_qk_norm\": false, \"attention_bias\": true, \"layer_typ"
	  "es\": [\"full_attention\", \"full_attention\", \"chunked_attention\", \"chunked_attention\"], \"moe_"
	  "layers\": [0, 3], \"attn_scale\": 0.7}",
	  {
		  { -0.2491394f, -0.5076714f, 0.1256207f, -0.2474941f, 0.562992f, -3.155546f, -2.909722f, 0.01522478f,
		    -2.472937f, -1.943464f, -2.45119f, -0.9921002f, -0.3950032f },
		  { -0.8476555f, 1.29947f, 1.602183f, -1.613033f, 1.320482f, -2.34653f, -0.7150252f, 0.3723642f,
		    -0.87702f, 1.251365f, -1.085814f, -0.8079517f, -0.6187559f },
	  } },
	{ "{\"model_type\": \"llama4_text\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_he"
	  "ads\": 6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": "
	  "13, \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"intermediate_size_mlp\": 17, \"nu"
	  "m_local_experts\": 5, \"num_experts_per_tok\": 1, \"attention_chunk_size\": 8, \"floor_scale\": 3"
	  ", \"attn_temperature_tuning\": false, \"no_rope_layer_interval\": 2, \"rope_parameters\": {\"rope"
	  "_type\": \"llama3\", \"rope_theta\": 500000.0, \"factor\": 8.0, \"low_freq_factor\": 1.0, \"high_fre"
	  "q_factor\": 4.0, \"original_max_position_embeddings\": 16}}",
	  {
		  { 0.8833657f, 1.831034f, -0.3046439f, 0.95801f, 0.1665215f, -1.166372f, -0.9147112f, 0.1628154f,
		    1.460864f, 0.03002813f, -0.8948789f, -0.2114983f, 0.04692753f },
		  { 2.501151f, -1.602325f, 0.4913797f, 0.3391356f, -0.1844383f, 0.08469644f, 0.05830206f, -0.02743492f,
		    -0.9717148f, -0.7461994f, -1.319774f, 2.196173f, -0.8917124f },
	  } },
	{ "{\"model_type\": \"qwen2_moe\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_head"
	  "s\": 6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13"
	  ", \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"num_experts\": 7, \"num_experts_per"
	  "_tok\": 3, \"moe_intermediate_size\": 9, \"shared_expert_intermediate_size\": 7, \"decoder_spars"
	  "e_step\": 2}",
	  {
		  { 2.051833f, -0.5472562f, -0.7305593f, -1.974325f, -1.053425f, -2.745589f, 0.3229508f, 1.299961f,
		    -3.14226f, -1.926646f, -0.3621664f, 2.474138f, 0.7340671f },
		  { 1.967175f, -2.658861f, 1.075373f, 0.8139437f, -0.2627309f, 0.9653089f, 0.1430845f, -0.002054021f,
		    0.1327578f, -1.019295f, -0.8227426f, 0.9977688f, -0.337788f },
	  } },
	{ "{\"model_type\": \"qwen2_moe\", \"hidden_size\": 30, \"num_hidden_layers\": 3, \"num_attention_head"
	  "s\": 6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13"
	  ", \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"num_experts\": 7, \"num_experts_per"
	  "_tok\": 3, \"moe_intermediate_size\": 9, \"shared_expert_intermediate_size\": 7, \"qkv_bias\": fa"
	  "lse, \"norm_topk_prob\": true, \"mlp_only_layers\": [1]}",
	  {
		  { -1.099144f, 0.09823592f, -0.8898007f, 1.244328f, 0.2234573f, -3.247577f, -0.4367256f, 1.129576f,
		    -1.998696f, -1.238137f, -0.3233478f, 0.3700388f, 0.3946459f },
		  { -2.898046f, 0.0982835f, -0.6062566f, 1.686578f, 0.132347f, -2.649048f, 0.08599916f, -1.216642f,
		    0.7406207f, 0.6021454f, -2.001386f, 0.01780239f, -0.555764f },
	  } },
	{ "{\"model_type\": \"gemma\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_heads\": "
	  "3, \"num_key_value_heads\": 1, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, \"m"
	  "ax_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"attention_bias\": true}",
	  {
		  { 1.267478f, 2.713803f, -3.698898f, -2.063292f, 0.1345797f, 1.608352f, 3.893826f, -0.2844704f,
		    -3.461477f, -2.794613f, 3.234482f, -3.249943f, 5.911399f },
		  { -1.250194f, -3.697378f, 3.762065f, 0.3548211f, 0.4828664f, -2.17904f, 3.175677f, -2.567744f,
		    0.5900054f, 4.9807f, 0.6371309f, 3.772357f, -3.46309f },
	  } },
	{ "{\"model_type\": \"granite\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_heads\""
	  ": 3, \"num_key_value_heads\": 1, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, "
	  "\"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"embedding_multiplier\": 3.0, \"attent"
	  "ion_multiplier\": 0.2, \"mlp_bias\": true, \"residual_multiplier\": 0.3, \"logits_scaling\": 1.7}",
	  {
		  { -0.02636467f, 0.8812602f, -1.082233f, 1.632945f, -0.2975325f, 0.637944f, -2.660334f, -0.2761011f,
		    -0.142612f, -0.9112013f, -0.1703083f, -0.7895814f, -0.6498277f },
		  { -0.2037507f, 0.06461949f, -1.189918f, 0.1422686f, -0.6195811f, 1.314253f, 0.4354502f, 0.477611f,
		    0.6446733f, -1.149825f, 0.6341975f, -0.3075628f, -1.661951f },
	  } },
	{ "{\"model_type\": \"smollm3\", \"hidden_size\": 60, \"num_hidden_layers\": 4, \"num_attention_heads\""
	  ": 6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, "
	  "\"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"attention_bias\": true, \"no_rope_lay"
	  "ers\": [1, 0, 0, 1], \"pad_token_id\": 0}",
	  {
		  { -0.2106916f, 2.88875f, 3.083984f, -0.5023757f, -3.358738f, -0.6863383f, -0.3619121f, 2.558308f,
		    -0.3802991f, -2.768306f, -1.212317f, 1.479594f, -4.549935f },
		  { 2.726457f, 0.6783755f, 2.012204f, 2.69105f, 1.016409f, -4.839514f, 1.36357f, 2.073364f, -1.380646f,
		    0.5991839f, 2.298627f, 1.554647f, -0.903533f },
	  } },
	{ "{\"model_type\": \"seed_oss\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_heads"
	  "\": 3, \"num_key_value_heads\": 1, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13,"
	  " \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05}",
	  {
		  { -1.972474f, 1.983258f, -0.6968442f, 1.988242f, -0.6894799f, -0.8877911f, -0.6419668f, -0.3917061f,
		    1.255844f, 1.981379f, 0.6479286f, 0.7416513f, -1.416223f },
		  { 0.07574381f, -0.2727891f, 0.1095746f, 0.6498663f, -2.347318f, 1.43851f, -1.047543f, 1.30236f,
		    -0.4334767f, -1.269046f, -0.5527666f, 0.7777256f, -2.77157f },
	  } },
	{ "{\"model_type\": \"seed_oss\", \"hidden_size\": 30, \"num_hidden_layers\": 2, \"num_attention_heads"
	  "\": 3, \"num_key_value_heads\": 1, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13,"
	  " \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"attention_bias\": false, \"attention"
	  "_out_bias\": true, \"mlp_bias\": true}",
	  {
		  { -0.2337194f, 1.259605f, 0.1327451f, 0.4880454f, 0.4285462f, 0.3550622f, -0.7330684f, 1.386154f,
		    0.3161262f, 3.066353f, 1.252122f, 1.829161f, -0.03834443f },
		  { -0.6895651f, 0.3984177f, -0.2075076f, -0.4648199f, -1.867332f, 0.9171157f, -1.670063f, 1.633807f,
		    -0.8053103f, -1.302346f, -1.166391f, 0.4381226f, -3.050881f },
	  } },
	{ "{\"model_type\": \"olmo2\", \"hidden_size\": 60, \"num_hidden_layers\": 3, \"num_attention_heads\": "
	  "6, \"num_key_value_heads\": 2, \"head_dim\": 10, \"intermediate_size\": 22, \"vocab_size\": 13, \"m"
	  "ax_position_embeddings\": 32, \"rms_norm_eps\": 1e-05}",
	  {
		  { -2.646214f, 0.03021668f, 1.596317f, -1.918596f, 0.2755004f, 3.840934f, 0.8900363f, 0.2544048f,
		    0.4990517f, 4.013722f, 1.42685f, 3.447647f, -3.83517f },
		  { -4.399014f, -0.3790361f, 2.799972f, 0.1468105f, -0.9384547f, -2.434972f, -0.2094562f, -0.5349973f,
		    2.688568f, -1.077799f, 1.99062f, -2.305228f, -1.006054f },
	  } },
};

#endif
