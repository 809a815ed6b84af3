import { eventRoutes } from './api/events.ts'
import { executionEventRoutes } from './api/execution-events.ts'
import { executionListRoutes } from './api/execution-list.ts'
import { executionRoutes } from './api/executions.ts'
import { jobRoutes } from './api/jobs.ts'
import { libraryRoutes } from './api/library.ts'
import { logRoutes } from './api/logs.ts'
import { modelStatusRoutes } from './api/model-status.ts'
import { loadRoutes } from './api/models.ts'
import { statusRoutes } from './api/status.ts'
import { systemRoutes } from './api/system.ts'
import { meRoutes, tokenRoutes } from './api/tokens.ts'
import { voiceModelRoutes } from './api/voice-models.ts'
import { workflowRoutes } from './api/workflows.ts'
import { falRoutes } from './fal/routes.ts'
import { fileRoutes } from './files/routes.ts'
import type { Route } from './route.ts'
import { batchRoutes } from './slug/batch.ts'
import { generateRoutes } from './slug/generate.ts'
import { requestRoutes } from './slug/requests.ts'
import { streamRoutes } from './slug/stream.ts'
import { imageRoutes } from './std/images.ts'
import { modelRoutes } from './std/models.ts'
import { speechRoutes } from './std/speech-routes.ts'
import { textRoutes } from './std/text.ts'
import { transcriptionRoutes } from './std/transcriptions.ts'

/** Every endpoint of the server. A path in this table is the only way to reach a handler. */
export const routes: readonly Route[] = [
  ...textRoutes,
  ...speechRoutes,
  ...transcriptionRoutes,
  ...imageRoutes,
  ...modelRoutes,
  ...modelStatusRoutes,
  ...voiceModelRoutes,
  ...loadRoutes,
  ...jobRoutes,
  ...eventRoutes,
  ...generateRoutes,
  ...requestRoutes,
  ...streamRoutes,
  ...batchRoutes,
  ...falRoutes,
  ...workflowRoutes,
  ...executionRoutes,
  ...executionListRoutes,
  ...executionEventRoutes,
  ...libraryRoutes,
  ...fileRoutes,
  ...meRoutes,
  ...tokenRoutes,
  ...statusRoutes,
  ...logRoutes,
  ...systemRoutes(() => routes),
]
