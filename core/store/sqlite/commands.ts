import type { Connection } from './database.ts'
import { jobCommands } from './jobs.ts'
import type { Ledger } from './ledger.ts'
import { organizationCommands } from './organizations.ts'
import type { Tally } from './tally.ts'
import { tokenCommands } from './tokens.ts'

/** Everything the writer can be asked, by name. Each is a synchronous function in the file that owns its table. */
export const openCommands = (connection: Connection, context: { boot: string; ledger: Ledger; tally: Tally }) => ({
  ...organizationCommands(connection),
  ...tokenCommands(connection),
  ...jobCommands(connection, context),
})
export type Commands = ReturnType<typeof openCommands>
export type CommandName = keyof Commands

/** What makes the database grow by a caller's wish. Refused first when the disk runs full. */
export const growing: ReadonlySet<string> = new Set<CommandName>([
  'organizations.create',
  'tokens.create',
  'tokens.rotate',
  'jobs.submit',
])
