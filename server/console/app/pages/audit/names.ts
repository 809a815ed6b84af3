import type { Schema } from '../../api/schema.ts'
import { auditText as text } from '../../text/audit.ts'

export type Entry = Schema<'AuditEntry'>

/** Names of users and tokens by their ids. */
export type Names = ReadonlyMap<string, string>

/** What was done, in words. */
export const actionName = (action: string): string => text.actions[action] ?? action

/** Who did it, in words. */
export function actorName({ type, token_id, user_id, os_user }: Entry['actor'], names: Names): string {
  if (type === 'command_line') return os_user === null ? text.actors.command_line : text.osUser(os_user)
  if (type === 'server') return text.actors.server
  const token = token_id === null ? text.actors.token : (names.get(token_id) ?? token_id)
  return user_id === null ? token : text.withToken(names.get(user_id) ?? user_id, token)
}

/** The name of what was changed: as the entry has it, else as it is now, else its id. */
export const targetName = (entry: Entry, names: Names): string =>
  ownName(entry) ?? names.get(entry.target.id) ?? entry.target.id

const ownName = ({ before, after }: Entry): string | undefined =>
  [after?.['name'], before?.['name']].find(name => typeof name === 'string')

/** The ids of the tokens and users whose names an entry does not have. */
export const namelessIn = (entry: Entry): readonly (string | null)[] => [
  entry.actor.token_id,
  entry.actor.user_id,
  ownName(entry) === undefined ? entry.target.id : null,
]

/** The changed fields with their values before and after as text; a dash where there is none. */
export function changesOf({ before, after }: Entry): { field: string; before: string; after: string }[] {
  const valueText = (fields: Entry['after'], name: string) => {
    const value = fields?.[name]
    return value === undefined || value === null ? '–' : typeof value === 'string' ? value : JSON.stringify(value)
  }
  return [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
    .map(field => ({ field, before: valueText(before, field), after: valueText(after, field) }))
    .filter(change => change.before !== change.after)
}
