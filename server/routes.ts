import { consoleRoutes } from './console/console-routes.ts'
import { guideRoutes } from './docs/guide-routes.ts'
import { referenceRoutes } from './docs/reference-routes.ts'
import type { RouteErrors } from './http/request/endpoint.ts'
import type { Owners } from './http/request/owners.ts'
import type { Route } from './http/request/route.ts'
import { anthropicErrors, anthropicRoutes } from './surfaces/anthropic/routes.ts'
import { cohereErrors, cohereRoutes } from './surfaces/cohere/routes.ts'
import { falErrors } from './surfaces/fal/errors.ts'
import { falRoutes } from './surfaces/fal/routes.ts'
import { mcpRoutes } from './surfaces/mcp/routes.ts'
import { approvalLinkRoutes } from './surfaces/native/approval-links.ts'
import { approvalRoutes } from './surfaces/native/approvals.ts'
import { auditRoutes } from './surfaces/native/audit.ts'
import { conversationLinkRoutes } from './surfaces/native/conversation-links.ts'
import { conversationRoutes } from './surfaces/native/conversations.ts'
import { engineRoutes } from './surfaces/native/engines.ts'
import { eventRoutes, executionEventRoutes } from './surfaces/native/events.ts'
import { executionRoutes } from './surfaces/native/executions.ts'
import { gpuRoutes } from './surfaces/native/gpu.ts'
import { gpuSetupRoutes } from './surfaces/native/gpu-setup.ts'
import { jobRoutes } from './surfaces/native/jobs.ts'
import { libraryRoutes } from './surfaces/native/library.ts'
import { logRoutes } from './surfaces/native/logs.ts'
import { meRoutes } from './surfaces/native/me.ts'
import { memberRoutes } from './surfaces/native/members.ts'
import { modelAdministrationRoutes } from './surfaces/native/model-administration.ts'
import { modelLoadRoutes, modelPlanRoutes, modelStatusRoutes } from './surfaces/native/model-loading.ts'
import { organizationLimitRoutes, organizationRoutes } from './surfaces/native/organizations.ts'
import { promptRewriteRoutes } from './surfaces/native/prompt-rewrite.ts'
import { sessionRoutes } from './surfaces/native/session.ts'
import { sharedConversationRoutes } from './surfaces/native/shared-conversations.ts'
import { fileRoutes } from './surfaces/native/signed-file-routes.ts'
import { statusRoutes } from './surfaces/native/status.ts'
import { streamResumeRoutes } from './surfaces/native/stream-resume.ts'
import { systemRoutes } from './surfaces/native/system.ts'
import { taskRoutes } from './surfaces/native/tasks.ts'
import { tokenRoutes } from './surfaces/native/tokens.ts'
import { usageRoutes } from './surfaces/native/usage.ts'
import { voiceModelRoutes } from './surfaces/native/voice-models.ts'
import { webhookRoutes } from './surfaces/native/webhooks.ts'
import { workflowRoutes } from './surfaces/native/workflows.ts'
import { ollamaErrors } from './surfaces/ollama/ollama-route.ts'
import { ollamaRoutes } from './surfaces/ollama/routes.ts'
import { batchJobRoutes } from './surfaces/openai/batches.ts'
import { stdFileRoutes } from './surfaces/openai/files.ts'
import { imageRoutes } from './surfaces/openai/images.ts'
import { modelRoutes } from './surfaces/openai/models.ts'
import { responseRoutes } from './surfaces/openai/responses/routes.ts'
import { speechRoutes } from './surfaces/openai/speech.ts'
import { scoringRoutes, textRoutes } from './surfaces/openai/text.ts'
import { transcriptionRoutes } from './surfaces/openai/transcriptions.ts'
import { uploadRoutes } from './surfaces/openai/uploads.ts'
import { videoRoutes } from './surfaces/openai/videos.ts'
import { webhookEndpointRoutes } from './surfaces/openai/webhook-endpoints.ts'
import { realtimeRoutes } from './surfaces/realtime/routes.ts'
import { replicateFileRoutes } from './surfaces/replicate/files.ts'
import { replicateModelRoutes } from './surfaces/replicate/models.ts'
import { predictionRoutes } from './surfaces/replicate/predictions.ts'
import { replicateErrors } from './surfaces/replicate/view.ts'
import { generateRoutes } from './surfaces/slug/generate.ts'
import { batchRoutes, requestRoutes } from './surfaces/slug/requests.ts'
import { slugErrors } from './surfaces/slug/view.ts'

/** Returns all routes of the server. Handlers are reached only through this table. */
export function routes(owners: Owners): readonly Route[] {
  const all: readonly Route[] = [
    ...textRoutes(owners),
    ...cohereRoutes(owners),
    ...scoringRoutes(owners),
    ...responseRoutes(owners),
    ...speechRoutes(owners),
    ...transcriptionRoutes(owners),
    ...realtimeRoutes(owners),
    ...imageRoutes(owners),
    ...stdFileRoutes(owners),
    ...uploadRoutes(owners),
    ...anthropicRoutes(owners),
    ...videoRoutes(owners),
    ...modelRoutes(owners),
    ...modelStatusRoutes(owners),
    ...modelPlanRoutes(owners),
    ...taskRoutes(owners),
    ...voiceModelRoutes(owners),
    ...modelLoadRoutes(owners),
    ...modelAdministrationRoutes(owners),
    ...gpuSetupRoutes(owners),
    ...engineRoutes(owners),
    ...gpuRoutes(owners),
    ...jobRoutes(owners),
    ...eventRoutes(owners),
    ...streamResumeRoutes(owners),
    ...generateRoutes(owners),
    ...requestRoutes(owners),
    ...batchRoutes(owners),
    ...batchJobRoutes(owners),
    ...promptRewriteRoutes(owners),
    ...falRoutes(owners),
    ...ollamaRoutes(owners),
    ...predictionRoutes(owners),
    ...replicateModelRoutes(owners),
    ...replicateFileRoutes(owners),
    ...workflowRoutes(owners),
    ...executionRoutes(owners),
    ...executionEventRoutes(owners),
    ...approvalRoutes(owners),
    ...approvalLinkRoutes(owners),
    ...conversationRoutes(owners),
    ...conversationLinkRoutes(owners),
    ...sharedConversationRoutes(owners),
    ...libraryRoutes(owners),
    ...fileRoutes(owners),
    ...sessionRoutes(owners),
    ...meRoutes(owners),
    ...organizationRoutes(owners),
    ...organizationLimitRoutes(owners),
    ...memberRoutes(owners),
    ...tokenRoutes(owners),
    ...webhookRoutes(owners),
    ...webhookEndpointRoutes(owners),
    ...usageRoutes(owners),
    ...auditRoutes(owners),
    ...statusRoutes(owners),
    ...logRoutes(owners),
    ...systemRoutes(owners),
    ...referenceRoutes(() => all),
    ...mcpRoutes(owners),
    ...guideRoutes(),
    ...consoleRoutes(owners),
  ]
  return all
}

/** Returns the table for reading only: the handlers must not be called. */
export const routeTable = (): readonly Route[] => routes({} as Owners)

/** The error formats of paths that are other vendors' APIs as a whole. */
const prefixes: readonly (readonly [path: string, errors: RouteErrors])[] = [
  ['/anthropic', anthropicErrors],
  ['/fal', falErrors],
  ['/ollama', ollamaErrors],
  ['/replicate', replicateErrors],
  ['/slug', slugErrors],
  ['/std/v2', cohereErrors],
  ['/v2', cohereErrors],
]

/** Returns the error format of requests that match no route; undefined below all other paths. */
export const errorsBelow = (url = ''): RouteErrors | undefined =>
  prefixes.find(([path]) => url.startsWith(path) && /^[/?]?$/.test(url.charAt(path.length)))?.[1]
