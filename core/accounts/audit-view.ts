import { z } from 'zod'
import { type AuditRecord, auditTargets } from '../store/store.ts'

const fields = z.record(z.string(), z.unknown()).nullable()

/** An entry of the audit log as the API and the CLI show it: times in epoch seconds. */
export const AuditEntryView = z
  .object({
    id: z.string().describe('Id of the entry; later entries have higher numbers.'),
    at: z.int().describe('Unix seconds.'),
    action: z.string().describe('What was done, such as `token.created`.'),
    actor: z
      .object({
        type: z.enum(['token', 'command_line', 'server']).describe('`command_line`: `infer` on the machine itself.'),
        token_id: z.string().nullable().describe('The token of the request; null for the others.'),
        user_id: z.string().nullable().describe('The user of the token; null if it has none.'),
        address: z.string().nullable().describe('Client address of the request; null for the others.'),
        os_user: z.string().nullable().describe('The user of the operating system at the command line.'),
      })
      .describe('Who did it.'),
    target: z
      .object({
        type: z.enum(auditTargets).describe('Kind of the object.'),
        id: z.string().describe('Id of the object.'),
      })
      .describe('What was changed.'),
    before: fields.describe('The changed fields before; null for a new object.'),
    after: fields.describe('The changed fields after; null for an object that no longer exists.'),
  })
  .meta({ id: 'AuditEntry', description: 'An administrative act.' })
export type AuditEntryView = z.output<typeof AuditEntryView>

export const auditEntryView = (record: AuditRecord): AuditEntryView => ({
  id: `audit_${record.number}`,
  at: Math.floor(record.at / 1000),
  action: record.action,
  actor: {
    type: record.actor.kind,
    token_id: record.actor.tokenId,
    user_id: record.actor.userId,
    address: record.actor.address,
    os_user: record.actor.osUser,
  },
  target: { type: record.targetType, id: record.targetId },
  before: record.before,
  after: record.after,
})

/** The number of a cursor such as `audit_12`; undefined for any other text. */
export function auditNumber(cursor: string): number | undefined {
  const digits = /^audit_([1-9]\d{0,14})$/.exec(cursor)?.[1]
  return digits === undefined ? undefined : Number(digits)
}
