/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/state/request.h"

#include <stdlib.h>

void xfp_request_free(struct xfp_request *request)
{
	free(request->model);
	free(request->out);
	free(request->cache);
	free(request->work);
	free(request->family);
	free(request->like);
	free(request->head_asked);
	free(request->launcher);
	xfp_parameters_free(&request->parameters);
	xfp_goal_free(&request->goal);
	free(request->calibration.text);
	free(request->calibration.ids);
	*request = (struct xfp_request){ .jobs = 0 };
}
