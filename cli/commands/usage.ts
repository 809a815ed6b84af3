import { type Command, Option } from '@commander-js/extra-typings'
import { moneyText } from '../../core/money-text.ts'
import { bucketWidths } from '../../core/store/store.ts'
import { organizationNames, withClient } from '../accounts/account-client.ts'
import { namesOf, workflowNames } from '../accounts/names.ts'
import type { Client } from '../client/client.ts'
import { orOwnLimits } from '../client/refusal.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { readPast, withCommon, withExamples } from '../terminal/options.ts'
import { timeText } from '../terminal/quantities-text.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type Grouping, readUsage, type Usage } from '../usage/read-usage.ts'

const groups = {
  model: 'model_id',
  task: 'task',
  token: 'token_id',
  user: 'user_id',
  workflow: 'workflow_id',
  status: 'status',
  day: 'day',
  org: 'organization_id',
} as const satisfies Record<string, Grouping>

const day = 86_400_000

/** `infer usage`: what the finished work of an organization has used, as a table, CSV or JSON. */
export function define(command: Command, terminal: Terminal): void {
  withCommon(command)
    .description(
      'Shows what the finished work of an organization has used: requests, jobs, tokens, GPU time, cost. Reads the data directory of this machine, whether the server runs or not, or the server at INFER_URL. Times are in UTC.',
    )
    .addOption(
      new Option('--by <group>', 'one row for each; org: of all organizations')
        .choices(Object.keys(groups) as (keyof typeof groups)[])
        .default('model'),
    )
    .option('--since <time>', 'where to begin: a time ago, or a date; default: 30d', (text: string) => readPast(text))
    .option('--until <time>', 'where to end: a time ago, or a date; default: now', (text: string) => readPast(text))
    .addOption(
      new Option('--width <time>', 'length of a bucket in --csv and --json; default: 1h up to 2 days, else 1d').choices(
        bucketWidths,
      ),
    )
    .option('--org <organization>', 'id or name; needed when there are several')
    .option('--csv', 'print a CSV file: a row for each bucket and group')
    .action(async ({ by, since, until, width, org, csv, json, dataDir }) => {
      if (csv && json) throw usageFailure('Choose --csv or --json.')
      const end = until ?? Date.now()
      const start = since ?? end - 30 * day
      if (start >= end) throw usageFailure('--since must be earlier than --until.')
      const groupBy = groups[by]
      const options = {
        organization: org,
        start: Math.floor(start / 1000),
        end: Math.ceil(end / 1000),
        width: width ?? (end - start <= 2 * day ? '1h' : '1d'),
        groupBy,
      } as const
      const print = async (client: Client): Promise<void> => {
        const used = await readUsage(client, options)
        if (json) return terminal.json(used)
        if (csv) return printCsv(used, groupBy, terminal)
        await printTable(used, groupBy, client, terminal)
      }
      await orOwnLimits(withClient(dataDir, print, { readsUsage: true }))
    })
  withExamples(command, [
    ['infer usage', 'the last 30 days by model'],
    ['infer usage --by day --since 7d', 'the last week'],
    ['infer usage --by org', 'every organization'],
    ['infer usage --by token --since 2026-01-01 --until 2026-02-01 --csv', 'January as CSV'],
  ])
}

async function printCsv({ buckets }: Usage, groupBy: Grouping, { stdout }: Terminal): Promise<void> {
  const { csvHeader, csvLine, sumsOf } = await import('../../core/store/usage-text.ts')
  stdout.write(csvHeader([groupBy]))
  for (const { start_time, end_time, results } of buckets)
    for (const result of results) stdout.write(csvLine(start_time, end_time, [result[groupBy] ?? ''], sumsOf(result)))
}

async function printTable(used: Usage, groupBy: Grouping, client: Client, terminal: Terminal): Promise<void> {
  const { usageTable } = await import('../usage/usage-table.ts')
  const organizations = await organizationNames(client)
  const { organization_id: id } = used
  const whose = id === null ? 'any organization' : (organizations.get(id) ?? id)
  const time = `${timeText(used.start_time * 1000)} to ${timeText(used.end_time * 1000)}`
  if (used.totals.requests + used.totals.jobs === 0)
    return terminal.remark(`No work of ${whose} has ended from ${time}.`)
  const ids = used.buckets.flatMap(({ results }) => results.map(result => result[groupBy]))
  const names =
    groupBy === 'organization_id'
      ? organizations
      : id !== null && (groupBy === 'token_id' || groupBy === 'user_id')
        ? await namesOf(client, id, ids)
        : id !== null && groupBy === 'workflow_id'
          ? await workflowNames(client, id)
          : undefined
  const width = terminal.isTerminal ? terminal.stdout.columns : 0
  const { head, rows } = usageTable(used, groupBy, { width, paint: terminal.paint, names })
  terminal.table(head, rows)
  const limit = used.spend_limit?.monthly_limit ?? null
  const spend =
    limit === null ? '' : ` This month: ${moneyText(used.spend_limit!.spent)} of ${moneyText(limit)} ${used.currency}.`
  terminal.remark(`${time}${id === null ? '' : `, ${whose}`}.${spend}`)
}
