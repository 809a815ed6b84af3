import type { Command } from '@commander-js/extra-typings'
import type { AuditEntryView } from '../../core/accounts/audit-view.ts'
import { organizationFor, withClient } from '../accounts/account-client.ts'
import { namesOf } from '../accounts/names.ts'
import { allPages, dataOf } from '../client/client.ts'
import { readCount, readSince, withCommon, withExamples } from '../terminal/options.ts'
import { timeText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer audit`: lists administrative acts, on this machine or of the server at INFER_URL. */
export function define(command: Command, terminal: Terminal): void {
  withCommon(command)
    .description('Lists who changed an organization, its limits, users and tokens, and from where, newest first.')
    .option('--org <organization>', 'id or name; needed when there are several')
    .option('--since <time>', 'only acts since: 30m, 2h, 7d or a date', readSince)
    .option('--action <name>', 'only these, such as token.created')
    .option('--target <id>', 'only acts on the object with this id')
    .option('--limit <count>', 'how many entries', readCount(1, 100_000), 50)
    .action(async ({ org, since, action, target, limit, json, dataDir }) => {
      await withClient(dataDir, async client => {
        const { id } = await organizationFor(client, org)
        const entries = await allPages((after, size) => {
          const query = { since, action, target, limit: size, after }
          const params = { path: { organization: id }, query }
          return dataOf(client.api.GET('/api/organizations/{organization}/audit', { params }))
        }, limit)
        if (json) terminal.json({ entries })
        else if (entries.length === 0) terminal.remark('There is no such act.')
        else {
          const names = await namesOf(
            client,
            id,
            entries.flatMap(({ actor, target }) => [actorOf(actor), target.id]),
          )
          const head = ['time', 'who', 'from', 'action', 'target', 'name', 'change']
          terminal.table(
            head,
            entries.map(entry => rowOf(entry, names)),
          )
        }
      })
    })
  withExamples(command, [
    ['infer audit --org acme --since 7d', 'of the last week'],
    ['infer audit --action token.created --json', 'for a program'],
  ])
}

const actorOf = ({ user_id, token_id, os_user, type }: AuditEntryView['actor']): string =>
  user_id ?? token_id ?? os_user ?? type.replace('_', ' ')

function rowOf({ at, actor, action, target, before, after }: AuditEntryView, names: ReadonlyMap<string, string>) {
  const who = actorOf(actor)
  const values = (fields: Record<string, unknown> | null) => (fields === null ? '-' : JSON.stringify(fields))
  const change = printable(`${values(before)} → ${values(after)}`)
  const shown = names.get(who) ?? printable(who)
  const from = printable(actor.address ?? '-')
  return [timeText(at * 1000), shown, from, action, target.id, names.get(target.id) ?? '', change]
}
