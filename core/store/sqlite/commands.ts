import type { Statements } from '../method-table.ts'
import { auditCommands } from './audit.ts'
import { batchCommands } from './batches.ts'
import { conversationLinkCommands } from './conversation-links.ts'
import { conversationCommands } from './conversations.ts'
import type { Connection } from './database.ts'
import { executionCommands } from './executions.ts'
import { fileCommands } from './files.ts'
import { idempotencyCommands } from './idempotency-keys.ts'
import { forgetCommands } from './job-forget.ts'
import { queueCommands } from './job-queue.ts'
import { jobCommands } from './jobs.ts'
import { libraryCommands } from './library.ts'
import { organizationEndCommands } from './organization-end.ts'
import { organizationCommands } from './organizations.ts'
import { responseCommands } from './responses.ts'
import { resultCommands } from './results.ts'
import { sessionCommands } from './sessions.ts'
import { setAsideCommands } from './set-aside.ts'
import { spendCommands } from './spend.ts'
import { tokenWorkCommands } from './token-work.ts'
import { tokenCommands } from './tokens.ts'
import { userCommands } from './users.ts'
import { waitCommands } from './waits.ts'
import { webhookDeliveryCommands } from './webhook-deliveries.ts'
import { webhookEndpointCommands } from './webhook-endpoints.ts'
import { workflowCommands } from './workflows.ts'
import type { WriteContext } from './write-context.ts'

/**
 * All commands of the writer, by name. Each is a synchronous function in the file that owns its table. A name with a dot
 * is a method of the store, with its arguments and its answer; others are the parts of methods that begin or end in the
 * calling thread (methods.ts).
 */
export const openCommands = (connection: Connection, context: WriteContext) =>
  ({
    ...auditCommands(context.audit),
    ...organizationCommands(connection, context),
    ...spendCommands(connection, context),
    // Here, because the writer alone knows the count of its jobs.
    'organizations.use': context.use.of,
    ...organizationEndCommands(connection, context),
    ...userCommands(connection, context),
    ...tokenCommands(connection, context),
    ...tokenWorkCommands(connection, context),
    ...jobCommands(connection, context),
    ...queueCommands(connection, context),
    ...forgetCommands(connection, context),
    ...resultCommands(connection),
    ...responseCommands(connection),
    ...conversationCommands(connection),
    ...conversationLinkCommands(connection),
    ...sessionCommands(connection),
    ...idempotencyCommands(connection),
    ...fileCommands(connection, context),
    ...libraryCommands(connection, context),
    ...workflowCommands(connection, context),
    ...executionCommands(connection, context),
    ...setAsideCommands(connection, context),
    ...waitCommands(connection, context),
    ...batchCommands(connection, context),
    ...webhookEndpointCommands(connection, context),
    ...webhookDeliveryCommands(connection, context),
  }) satisfies Statements
export type Commands = ReturnType<typeof openCommands>
export type CommandName = keyof Commands

/** Commands of callers that make the database grow. They are refused first when the disk is nearly full. */
export const growingCommands: ReadonlySet<string> = new Set<CommandName>([
  'organizations.create',
  'users.create',
  'tokens.create',
  'tokens.rotate',
  'addJob',
  'addJobs',
  'files.add',
  'idempotency.keep',
  'responses.add',
  'conversations.create',
  'conversations.update',
  'conversationLinks.create',
  'sessions.add',
  'addWorkflow',
  'updateWorkflow',
  'addExecution',
  'webhooks.create',
  'addBatch',
  'feedBatch',
])

type Weights = { [Name in CommandName]?: (...given: Parameters<Commands[Name]>) => number }
const lengthOf = (jobs: readonly { inputs: string }[]) => jobs.reduce((sum, { inputs }) => sum + inputs.length, 0)

/** The length in characters of the long texts of a command. */
export const weights: Weights = {
  addJob: job => job.inputs.length,
  addJobs: lengthOf,
  feedBatch: ({ jobs }) => lengthOf(jobs),
  resumeJob: (_organizationId, _id, how) => ('inputs' in how ? how.inputs.length : 0),
  settleJob: (_claim, outcome) =>
    (outcome.status === 'completed' && typeof outcome.result === 'string' ? outcome.result.length : 0) +
    (outcome.logs?.length ?? 0),
  resolveJob: (_job, outcome) =>
    outcome.status === 'completed' && typeof outcome.result === 'string' ? outcome.result.length : 0,
  'executions.setAside': (_organizationId, _jobId, { inputs }) => inputs?.length ?? 0,
  'idempotency.keep': (_digest, { body }) => body.length,
  'responses.add': ({ input, answer }) => input.length + (answer?.length ?? 0),
  'conversations.create': ({ messages }) => messages.reduce((sum, { text }) => sum + text.length, 0),
  'conversations.update': (_owner, _id, { messages }) => messages.reduce((sum, { text }) => sum + text.length, 0),
  'webhooks.keepBodies': bodies => bodies.reduce((sum, { body }) => sum + body.length, 0),
  'webhooks.settle': ({ responseBody }) => responseBody?.length ?? 0,
}
