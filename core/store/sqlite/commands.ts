import type { Connection } from './database.ts'
import { executionCommands } from './executions.ts'
import { fileCommands } from './files.ts'
import type { Writing } from './job-end.ts'
import { forgetCommands } from './job-forget.ts'
import { queueCommands } from './job-queue.ts'
import { jobCommands } from './jobs.ts'
import { replyCommands } from './keys.ts'
import { libraryCommands } from './library.ts'
import { organizationCommands } from './organizations.ts'
import { resultCommands } from './result-rows.ts'
import { tokenCommands } from './tokens.ts'
import { workflowCommands } from './workflows.ts'

/** Everything the writer can be asked, by name. Each is a synchronous function in the file that owns its table. */
export const openCommands = (connection: Connection, writing: Writing) => ({
  ...organizationCommands(connection),
  ...tokenCommands(connection),
  ...jobCommands(connection, writing),
  ...queueCommands(connection, writing),
  ...forgetCommands(connection, writing),
  ...resultCommands(connection),
  ...replyCommands(connection),
  ...fileCommands(connection),
  ...libraryCommands(connection),
  ...workflowCommands(connection),
  ...executionCommands(connection, writing),
})
export type Commands = ReturnType<typeof openCommands>
export type CommandName = keyof Commands

/** What makes the database grow by a caller's wish. Refused first when the disk runs full. */
export const growing: ReadonlySet<string> = new Set<CommandName>([
  'organizations.create',
  'tokens.create',
  'tokens.rotate',
  'jobs.submit',
  'files.add',
  'replies.keep',
  'workflows.create',
  'workflows.update',
  'executions.create',
])
