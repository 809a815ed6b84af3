import { batchCommands } from './batches.ts'
import type { Connection } from './database.ts'
import { executionCommands } from './executions.ts'
import { fileCommands } from './files.ts'
import type { WriteContext } from './job-end.ts'
import { forgetCommands } from './job-forget.ts'
import { queueCommands } from './job-queue.ts'
import { jobCommands } from './jobs.ts'
import { idempotencyCommands } from './keys.ts'
import { libraryCommands } from './library.ts'
import { organizationEndCommands } from './organization-end.ts'
import { organizationUseCommands } from './organization-use.ts'
import { organizationCommands } from './organizations.ts'
import { responseCommands } from './responses.ts'
import { resultCommands } from './result-rows.ts'
import { sessionCommands } from './sessions.ts'
import { spendCommands } from './spend.ts'
import { tokenCommands } from './tokens.ts'
import { userCommands } from './users.ts'
import { webhookDeliveryCommands } from './webhook-deliveries.ts'
import { webhookEndpointCommands } from './webhook-endpoints.ts'
import { workflowCommands } from './workflows.ts'

/** All commands of the writer, by name. Each is a synchronous function in the file that owns its table. */
export const openCommands = (connection: Connection, context: WriteContext) => ({
  ...organizationCommands(connection),
  ...spendCommands(context),
  ...organizationUseCommands(context.use),
  ...organizationEndCommands(connection, context),
  ...userCommands(connection, context),
  ...tokenCommands(connection, context),
  ...jobCommands(connection, context),
  ...queueCommands(connection, context),
  ...forgetCommands(connection, context),
  ...resultCommands(connection),
  ...responseCommands(connection),
  ...sessionCommands(connection),
  ...idempotencyCommands(connection),
  ...fileCommands(connection, context),
  ...libraryCommands(connection),
  ...workflowCommands(connection),
  ...executionCommands(connection, context),
  ...batchCommands(connection, context),
  ...webhookEndpointCommands(connection, context),
  ...webhookDeliveryCommands(connection, context),
})
export type Commands = ReturnType<typeof openCommands>
export type CommandName = keyof Commands

/** Commands of callers that make the database grow. They are refused first when the disk is nearly full. */
export const growingCommands: ReadonlySet<string> = new Set<CommandName>([
  'organizations.create',
  'users.create',
  'tokens.create',
  'tokens.rotate',
  'jobs.submit',
  'jobs.submitAll',
  'files.add',
  'idempotency.keep',
  'responses.add',
  'sessions.add',
  'workflows.create',
  'workflows.update',
  'executions.create',
  'webhooks.create',
  'batches.create',
  'batches.feed',
])
