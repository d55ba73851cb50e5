#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""python -m xfp serve answers, and python -m xfp chat talks to it."""
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from common import Case, path_of

from xfp.__main__ import main


class Serving(Case):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = os.path.join(temporary.name, "folder")
        main(["folder", path_of("qwen3_moe.xfp"), self.folder])
        words = {f"w{i}": i for i in range(128)}
        self.write("tokenizer.json", {
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
            "post_processor": None, "decoder": None, "pre_tokenizer": {"type": "Whitespace"},
            "model": {"type": "WordLevel", "vocab": words, "unk_token": "w0"}})
        self.write("tokenizer_config.json", {
            "tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "w0",
            "chat_template": "{% for m in messages %}{{ m['content'] }}{% endfor %}"})

    def write(self, name, content):
        with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
            json.dump(content, file)

    def test_serve_and_chat(self):
        with socket.socket() as free:
            free.bind(("localhost", 0))
            url = f"http://localhost:{free.getsockname()[1]}"
        server = subprocess.Popen([sys.executable, "-m", "xfp", "serve", self.folder, "--port", url.rpartition(":")[2]],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        body = {"model": self.folder, "messages": [{"role": "user", "content": "w3 w5"}], "max_tokens": 4}
        request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        found = chat = None
        while found is None and server.poll() is None:
            try:
                with urllib.request.urlopen(request, timeout=120) as answer:
                    found = json.load(answer)
            except urllib.error.URLError:
                time.sleep(0.5)
        if found:
            chat = subprocess.run(
                [sys.executable, "-m", "xfp", "chat", self.folder, url + "/v1", "max_new_tokens=4"], text=True,
                input="w3 w5\nn\n!exit\n", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        server.terminate()
        errors = server.communicate()[1]
        self.assertIsNotNone(found, errors)
        self.assertEqual(found["usage"]["completion_tokens"], 4, errors)
        self.assertRegex(found["choices"][0]["message"]["content"], r"(w\d+ ?){4}$")
        self.assertEqual(chat.returncode, 0, chat.stdout)
        self.assertRegex(chat.stdout, r"(w\d+ ){3}w\d+")
        self.assertIn("4 tokens in ", chat.stdout)


if __name__ == "__main__":
    unittest.main()
