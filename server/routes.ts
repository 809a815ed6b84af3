import { anthropicRoutes } from './anthropic/routes.ts'
import { auditRoutes } from './api/audit.ts'
import { eventRoutes } from './api/events.ts'
import { executionEventRoutes } from './api/execution-events.ts'
import { executionListRoutes } from './api/execution-list.ts'
import { executionRoutes } from './api/executions.ts'
import { jobRoutes } from './api/jobs.ts'
import { libraryRoutes } from './api/library.ts'
import { logRoutes } from './api/logs.ts'
import { meRoutes } from './api/me.ts'
import { memberRoutes } from './api/members.ts'
import { modelAdministrationRoutes } from './api/model-administration.ts'
import { modelLoadRoutes } from './api/model-loading.ts'
import { modelStatusRoutes } from './api/model-status.ts'
import { organizationLimitRoutes } from './api/organization-limits.ts'
import { organizationRoutes } from './api/organizations.ts'
import { promptRewriteRoutes } from './api/prompt-rewrite.ts'
import { sessionRoutes } from './api/session.ts'
import { statusRoutes } from './api/status.ts'
import { systemRoutes } from './api/system.ts'
import { systemHistoryRoutes } from './api/system-history.ts'
import { systemInspectionRoutes } from './api/system-inspection.ts'
import { taskRoutes } from './api/tasks.ts'
import { tokenRoutes } from './api/tokens.ts'
import { usageRoutes } from './api/usage.ts'
import { voiceModelRoutes } from './api/voice-models.ts'
import { webhookDeliveryRoutes } from './api/webhook-deliveries.ts'
import { webhookSecretRoutes } from './api/webhook-secrets.ts'
import { webhookRoutes } from './api/webhooks.ts'
import { workflowVersionRoutes } from './api/workflow-versions.ts'
import { workflowRoutes } from './api/workflows.ts'
import { consoleRoutes } from './console/console-routes.ts'
import { guideRoutes } from './docs/guide-routes.ts'
import { falRoutes } from './fal/routes.ts'
import { fileRoutes } from './files/routes.ts'
import { mcpRoutes } from './mcp/routes.ts'
import { ollamaRoutes } from './ollama/routes.ts'
import type { Owners } from './owners.ts'
import { realtimeRoutes } from './realtime/routes.ts'
import { replicateRoutes } from './replicate/routes.ts'
import type { Route } from './route.ts'
import { batchRoutes } from './slug/batch.ts'
import { generateRoutes } from './slug/generate.ts'
import { requestRoutes } from './slug/requests.ts'
import { streamRoutes } from './slug/stream.ts'
import { batchJobRoutes } from './std/batches.ts'
import { stdFileRoutes } from './std/files.ts'
import { imageRoutes } from './std/images.ts'
import { modelRoutes } from './std/models.ts'
import { responseRoutes } from './std/responses/routes.ts'
import { speechRoutes } from './std/speech-routes.ts'
import { textRoutes } from './std/text.ts'
import { transcriptionRoutes } from './std/transcriptions.ts'
import { uploadRoutes } from './std/uploads.ts'
import { videoRoutes } from './std/videos.ts'
import { webhookEndpointRoutes } from './std/webhook-endpoints.ts'

/** Returns all routes of the server. Handlers are reached only through this table. */
export function routes(owners: Owners): readonly Route[] {
  const all: readonly Route[] = [
    ...textRoutes(owners),
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
    ...taskRoutes(owners),
    ...voiceModelRoutes(owners),
    ...modelLoadRoutes(owners),
    ...modelAdministrationRoutes(owners),
    ...jobRoutes(owners),
    ...eventRoutes(owners),
    ...generateRoutes(owners),
    ...requestRoutes(owners),
    ...streamRoutes(owners),
    ...batchRoutes(owners),
    ...batchJobRoutes(owners),
    ...promptRewriteRoutes(owners),
    ...falRoutes(owners),
    ...ollamaRoutes(owners),
    ...replicateRoutes(owners),
    ...workflowRoutes(owners),
    ...workflowVersionRoutes(owners),
    ...executionRoutes(owners),
    ...executionListRoutes(owners),
    ...executionEventRoutes(owners),
    ...libraryRoutes(owners),
    ...fileRoutes(owners),
    ...sessionRoutes(owners),
    ...meRoutes(owners),
    ...organizationRoutes(owners),
    ...organizationLimitRoutes(owners),
    ...memberRoutes(owners),
    ...tokenRoutes(owners),
    ...webhookRoutes(owners),
    ...webhookDeliveryRoutes(owners),
    ...webhookSecretRoutes(owners),
    ...webhookEndpointRoutes(owners),
    ...usageRoutes(owners),
    ...auditRoutes(owners),
    ...statusRoutes(owners),
    ...logRoutes(owners),
    ...systemHistoryRoutes(owners),
    ...systemInspectionRoutes(owners),
    ...systemRoutes(() => all, owners),
    ...mcpRoutes(owners),
    ...guideRoutes(),
    ...consoleRoutes(owners),
  ]
  return all
}

/** Returns the table for reading only: the handlers must not be called. */
export const routeTable = (): readonly Route[] => routes({} as Owners)
