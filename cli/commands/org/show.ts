import type { Command } from 'commander'
import type { OrganizationLimitsView, OrganizationView } from '../../../core/accounts/organization-view.ts'
import { organizationFor, withAccountClient } from '../../accounts/account-client.ts'
import { type CommonOptions, withCommon, withExamples } from '../../terminal/options.ts'
import { printable } from '../../terminal/paint.ts'
import { sizeText, timeText } from '../../terminal/quantities-text.ts'
import type { Terminal } from '../../terminal/terminal.ts'

/** `infer org show [organization]`: shows an organization with its limits. */
export function define(command: Command, terminal: Terminal): void {
  const show = withCommon(command.command('show'))
    .summary('show an organization with its limits')
    .description('Shows an organization with its plan, limits and status.')
    .argument('[organization]', 'id or name; needed when there are several')
    .action(async (text: string | undefined, { json, dataDir }: CommonOptions) => {
      await withAccountClient(dataDir, async client => {
        const organization = await organizationFor(client, text)
        if (json) terminal.json({ organization })
        else terminal.table(['organization', printable(organization.name)], rowsOf(organization))
      })
    })
  withExamples(show, [['infer org show acme', 'plan, status and limits']])
}

const rowsOf = (it: OrganizationView): string[][] => [
  ['id', it.id],
  ['plan', it.plan],
  ['status', it.status],
  ['region', it.region ?? 'any'],
  ['share', it.share === null ? 'of the plan' : String(it.share)],
  ...limitRows(it.limits),
  ['created', timeText(it.created_at * 1000)],
  ['updated', timeText(it.updated_at * 1000)],
]

/** Returns one row for each limit. */
export function limitRows(limits: OrganizationLimitsView): string[][] {
  const shown = (limit: number | null, text: (limit: number) => string = String): string =>
    limit === null ? 'of the plan' : limit === 0 ? 'no limit' : text(limit)
  const spend = limits.monthly_spend_limit
  return [
    ['requests per minute', shown(limits.api_requests_per_minute)],
    ['jobs per minute', shown(limits.job_submissions_per_minute)],
    ['concurrent requests', shown(limits.concurrent_requests)],
    ['pending jobs', shown(limits.pending_jobs)],
    ['stored bytes', shown(limits.stored_bytes, sizeText)],
    ['uploads per day', shown(limits.uploads_per_day)],
    ['spend limit per month', spend === null ? 'of the plan' : String(spend)],
  ]
}
