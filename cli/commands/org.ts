import { type Command, InvalidArgumentError, Option, type OptionValues } from '@commander-js/extra-typings'
import type { OrganizationLimitsChange, OrganizationView } from '../../core/accounts/organization-view.ts'
import { newId } from '../../core/ids.ts'
import { moneyText } from '../../core/money-text.ts'
import { Bytes } from '../../core/quantities.ts'
import { callStorages } from '../../core/store/account-records.ts'
import { forced, organizationFor, organizationsOf, withClient } from '../accounts/account-client.ts'
import { type Api, type Client, dataOf, memberOf } from '../client/client.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import {
  type NoOptions,
  nothing,
  type OptionsOf,
  orNull,
  readCount,
  readOrNone,
  withCommon,
  withExamples,
} from '../terminal/options.ts'
import { sizeText, timeText } from '../terminal/quantities-text.ts'
import { confirmDestructive } from '../terminal/standard-input.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer org …`: organizations of the server on this machine, whether it runs or not, or of the server at INFER_URL. */
export function define(command: Command, terminal: Terminal): void {
  for (const part of [
    defineCreate,
    defineList,
    defineShow,
    defineUpdate,
    defineLimits,
    defineSuspend,
    defineResume,
    defineDelete,
  ])
    part(command, terminal)
  withExamples(command, [
    ['infer org create acme', 'create an organization'],
    ['infer org limits acme --spend-limit 100', 'bound what it spends'],
    ['infer org suspend acme', 'refuse its tokens for a while'],
  ])
}

const one = '/api/organizations/{organization}'
const at = (organization: string) => ({ params: { path: { organization } } })

function requireName(name: string): string {
  const trimmed = name.trim()
  if (trimmed === '' || trimmed.length > 128) throw usageFailure('The name of an organization has 1 to 128 characters.')
  return trimmed
}

function readBytesOrNone(text: string): number | typeof nothing {
  if (text === nothing) return nothing
  const read = Bytes.safeParse(text)
  if (!read.success) throw new InvalidArgumentError('Write it as 500MiB, 20GiB or none.')
  return read.data
}

const most = 1_000_000_000
const readCountOrNone = readOrNone(0, most)

/** Adds an option for each limit of an organization. `none` is null: the figure of the plan. */
const withLimits = <Args extends unknown[], Options extends OptionValues>(command: Command<Args, Options>) =>
  command
    .option('--requests-per-minute <count>', 'API requests per minute; 0 is no limit', readCountOrNone)
    .option('--jobs-per-minute <count>', 'submissions of work per minute; 0 is no limit', readCountOrNone)
    .option('--concurrent-requests <count>', 'synchronous requests at the same time; 0 is no limit', readCountOrNone)
    .option('--pending-jobs <count>', 'jobs that wait or run; 0 is no limit', readCountOrNone)
    .option('--stored-bytes <size>', 'all its files, such as 20GiB; 0 is no limit', readBytesOrNone)
    .option('--uploads-per-day <count>', 'uploaded files per day in UTC; 0 is no limit', readCountOrNone)
    .option(
      '--spend-limit <amount>',
      'spending per calendar month in UTC; 0 is no spending',
      readOrNone(0, most, false),
    )
    .addOption(
      new Option('--local-only <choice>', 'yes: its work never leaves this machine').choices(['yes', 'no', nothing]),
    )

/** Converts the options to the limits of the API; undefined if none was given. */
function organizationLimitsChange(
  options: OptionsOf<typeof withLimits<[], NoOptions>>,
): OrganizationLimitsChange | undefined {
  const { localOnly } = options
  const limits = {
    api_requests_per_minute: orNull(options.requestsPerMinute),
    job_submissions_per_minute: orNull(options.jobsPerMinute),
    concurrent_requests: orNull(options.concurrentRequests),
    pending_jobs: orNull(options.pendingJobs),
    stored_bytes: orNull(options.storedBytes),
    uploads_per_day: orNull(options.uploadsPerDay),
    monthly_spend_limit: orNull(options.spendLimit),
    local_only: localOnly === nothing ? null : localOnly && localOnly === 'yes',
  }
  const given = Object.entries(limits).filter(([, limit]) => limit !== undefined)
  return given.length === 0 ? undefined : Object.fromEntries(given)
}

/** `infer org create [name]`: creates an organization. */
function defineCreate(command: Command, terminal: Terminal): void {
  const create = withLimits(
    withCommon(command.command('create'))
      .summary('create an organization')
      .description('Creates an organization. It has no token yet: infer token create creates one.')
      .argument('[name]', 'its name; default: its id')
      .addOption(new Option('--name <name>', 'the same as an option').hideHelp())
      .option('--plan <plan>', 'its default limits: free, pro, enterprise or one of infer.yaml')
      .option('--region <region>', 'the only region whose models it may use, such as EU')
      .option('--share <count>', "its share of GPU time while others wait; default: its plan's", readCount(1, 100)),
  ).action(async (argument, { name, plan, region, share, json, dataDir, ...limits }) => {
    await withClient(dataDir, async client => {
      // Without a name, an id is the name.
      const given = requireName(argument ?? name ?? newId('org'))
      const body = { name: given, plan, region, share, limits: organizationLimitsChange(limits) }
      const organization = await memberOf(client.api.POST('/api/organizations', { body }), 'organization')
      if (json) return terminal.json({ organization })
      terminal.print(`Created the organization ${organization.name} (${organization.id}).`)
      terminal.remark(`Create a token for it: infer token create --org ${organization.id}`)
    })
  })
  withExamples(create, [
    ['infer org create acme', 'with the default plan'],
    ['infer org create acme --plan pro --spend-limit 100 --json', 'for a program'],
  ])
}

/** `infer org list`: lists the organizations. */
function defineList(command: Command, terminal: Terminal): void {
  const list = withCommon(command.command('list'))
    .summary('list the organizations')
    .description('Lists the organizations.')
    .option('--all', 'also those that were deleted')
    .action(async ({ all, json, dataDir }) => {
      await withClient(dataDir, async client => {
        const organizations = (await organizationsOf(client)).filter(({ status }) => all || status !== 'deleted')
        if (json) return terminal.json({ organizations })
        terminal.table(
          ['id', 'name', 'plan', 'status', 'created'],
          organizations.map(({ id, name, plan, status, created_at }) => [
            id,
            printable(name),
            plan,
            status,
            timeText(created_at * 1000),
          ]),
        )
      })
    })
  withExamples(list, [
    ['infer org list', 'as a table'],
    ['infer org list --all --json', 'for a program, deleted ones included'],
  ])
}

/** `infer org show [organization]`: shows an organization with its limits. */
function defineShow(command: Command, terminal: Terminal): void {
  const show = withCommon(command.command('show'))
    .summary('show an organization with its limits')
    .description('Shows an organization with its plan, limits and status.')
    .argument('[organization]', 'id or name; needed when there are several')
    .action(async (text, { json, dataDir }) => {
      await withClient(dataDir, async client => {
        const organization = await organizationFor(client, text, { option: 'infer org show <organization>' })
        if (json) return terminal.json({ organization })
        const rows = rowsOf(organization, await limitsOf(client, organization.id))
        terminal.table(['organization', printable(organization.name)], rows)
      })
    })
  withExamples(show, [['infer org show acme', 'plan, status and limits']])
}

/** The limits of an organization of its own, and those that apply. */
const limitsOf = (client: Client, id: string) => dataOf(client.api.GET(`${one}/limits`, at(id)))

const rowsOf = (it: OrganizationView, applied: Api['OrganizationLimitsAnswer']): string[][] => [
  ['id', it.id],
  ['plan', it.plan],
  ['status', it.status],
  ['region', it.region ?? 'any'],
  ['stored of calls', it.call_storage],
  ['share', `${applied.share}${it.share === null ? ofPlan : ''}`],
  ...limitRows(applied),
  ['created', timeText(it.created_at * 1000)],
  ['updated', timeText(it.updated_at * 1000)],
]

const ofPlan = '  (of the plan)'

/** Returns one row for each limit: the figure that applies, and whether it is that of the plan. */
function limitRows({ limits, effective }: Api['OrganizationLimitsAnswer']): string[][] {
  const row = (
    title: string,
    name: Exclude<keyof typeof effective, 'local_only'>,
    text: (limit: number) => string = String,
  ): string[] => {
    const limit = effective[name]
    const isOwn = name !== 'tokens_per_minute' && limits[name] !== null
    return [title, `${limit === null ? 'no limit' : text(limit)}${isOwn ? '' : ofPlan}`]
  }
  return [
    row('requests per minute', 'api_requests_per_minute'),
    row('jobs per minute', 'job_submissions_per_minute'),
    row('tokens per minute', 'tokens_per_minute'),
    row('concurrent requests', 'concurrent_requests'),
    row('pending jobs', 'pending_jobs'),
    row('stored bytes', 'stored_bytes', sizeText),
    row('uploads per day', 'uploads_per_day'),
    row('spend limit per month', 'monthly_spend_limit', moneyText),
    ['stays on this machine', `${effective.local_only ? 'yes' : 'no'}${limits.local_only === null ? ofPlan : ''}`],
  ]
}

/** `infer org update <organization>`: changes name, plan, region, share or what is stored of its calls. */
function defineUpdate(command: Command, terminal: Terminal): void {
  const update = withCommon(command.command('update'))
    .summary('change name, plan, region, share or what is stored')
    .description(
      'Changes name, plan, region, share, or what is stored of the calls of an organization. infer org limits changes its limits.',
    )
    .argument('<organization>', 'id or name')
    .option('--name <name>', 'its new name')
    .option('--plan <plan>', 'its default limits: free, pro, enterprise or one of infer.yaml')
    .option('--region <region>', 'the only region whose models it may use; none for any')
    .option('--share <count>', "its share of GPU time while others wait; none for its plan's", readOrNone(1, 100))
    .addOption(
      new Option('--call-storage <choice>', 'content: conversations are kept on the server').choices(callStorages),
    )
    .action(async (text, { name, plan, region, share, callStorage, json, dataDir }) => {
      if ([name, plan, region, share, callStorage].every(one => one === undefined))
        throw usageFailure(
          'Nothing to change. Give at least one of --name, --plan, --region, --share and --call-storage.',
        )
      await withClient(dataDir, async client => {
        const { id } = await organizationFor(client, text)
        const body = {
          name: name === undefined ? name : requireName(name),
          plan,
          region: orNull(region),
          share: orNull(share),
          call_storage: callStorage,
        }
        const organization = await memberOf(client.api.PATCH(one, { ...at(id), body }), 'organization')
        terminal.result(json, { organization }, `Updated the organization ${organization.name}.`)
      })
    })
  withExamples(update, [
    ['infer org update acme --plan pro', 'other limits from the next request on'],
    ['infer org update acme --name "Acme Ltd"', 'a new name'],
  ])
}

/** `infer org limits <organization>`: shows the limits, or changes those that are given. */
function defineLimits(command: Command, terminal: Terminal): void {
  const limits = withLimits(
    withCommon(command.command('limits'))
      .summary('show or change the limits')
      .description(
        'Shows the limits of an organization, or changes those that are given; none returns to the figure of the plan.',
      )
      .argument('<organization>', 'id or name'),
  ).action(async (text, { json, dataDir, ...options }) => {
    await withClient(dataDir, async client => {
      const { id, name } = await organizationFor(client, text)
      const change = organizationLimitsChange(options)
      const applied = change
        ? await dataOf(client.api.PATCH(`${one}/limits`, { ...at(id), body: change }))
        : await limitsOf(client, id)
      if (json) terminal.json(applied)
      else terminal.table([`limits (plan ${applied.plan})`, printable(name)], limitRows(applied))
    })
  })
  withExamples(limits, [
    ['infer org limits acme', 'show them'],
    ['infer org limits acme --spend-limit 100 --jobs-per-minute 20', 'change two of them'],
    ['infer org limits acme --jobs-per-minute none', 'as its plan says'],
  ])
}

/** `infer org suspend <organization>`: refuses its tokens and starts none of its jobs. */
function defineSuspend(command: Command, terminal: Terminal): void {
  const suspend = withCommon(command.command('suspend'))
    .summary('refuse its tokens until it is resumed')
    .description(
      'Refuses the tokens of an organization and ends its open streams. What runs is finished, and jobs that wait stay until it is resumed.',
    )
    .argument('<organization>', 'id or name')
    .option('--cancel', 'cancel what runs and waits')
    .action(async (text, { cancel = false, json, dataDir }) => {
      await withClient(
        dataDir,
        async client => {
          const { id } = await organizationFor(client, text)
          const query = cancel ? ({ cancel: 'true' } as const) : {}
          const suspended = client.api.POST(`${one}/suspend`, { params: { ...at(id).params, query } })
          const { organization, ...ended } = await dataOf(suspended)
          if (json) return terminal.json({ organization, ...ended })
          terminal.print(`Suspended the organization ${organization.name}.`)
          if (cancel)
            terminal.remark(
              `Cancelled: ${ended.jobs_cancelled} jobs, ${ended.executions_cancelled} executions, ${ended.requests_cancelled} requests.`,
            )
          terminal.remark(`Accept its tokens again with: infer org resume ${id}`)
        },
        { stopsWork: cancel },
      )
    })
  withExamples(suspend, [
    ['infer org suspend acme', 'what runs is finished'],
    ['infer org suspend acme --cancel', 'what runs is cancelled'],
  ])
}

/** `infer org resume <organization>`: accepts its tokens and starts its jobs again. */
function defineResume(command: Command, terminal: Terminal): void {
  const resume = withCommon(command.command('resume'))
    .summary('accept its tokens again')
    .description('Accepts the tokens of a suspended organization again, and starts its waiting jobs.')
    .argument('<organization>', 'id or name')
    .action(async (text, { json, dataDir }) => {
      await withClient(dataDir, async client => {
        const { id } = await organizationFor(client, text)
        const organization = await memberOf(client.api.POST(`${one}/resume`, at(id)), 'organization')
        terminal.result(json, { organization }, `Resumed the organization ${organization.name}.`)
      })
    })
  withExamples(resume, [['infer org resume acme', 'after infer org suspend']])
}

/** `infer org delete <organization>`: deletes an organization for good. */
function defineDelete(command: Command, terminal: Terminal): void {
  const remove = withCommon(command.command('delete'))
    .summary('delete an organization for good')
    .description(
      'Deletes an organization for good: its tokens, users, files, jobs, executions and workflows. Its usage, its ledger and its audit log are kept.',
    )
    .argument('<organization>', 'id or name')
    .option('--force', 'cancel unfinished work')
    .option('--yes', 'do not ask')
    .action((text, { force = false, yes, json, dataDir }) =>
      interruptible(terminal, signal =>
        withClient(
          dataDir,
          async client => {
            const { id, name } = await organizationFor(client, text)
            const question = `Delete the organization ${name} with its tokens, users, files and jobs?`
            if (!(await confirmDestructive(question, yes, terminal, signal))) return
            const params = { ...at(id).params, ...forced(force) }
            const ended = await dataOf(client.api.DELETE(one, { params }))
            if (json) return terminal.json(ended)
            terminal.print(`Deleted the organization ${name} (${id}).`)
            terminal.remark(
              `Revoked ${ended.tokens_revoked} tokens, removed ${ended.users_removed} users, ${ended.files_removed} files and ${ended.workflows_removed} workflows, cancelled ${ended.jobs_cancelled} jobs and ${ended.executions_cancelled} executions.`,
            )
          },
          { stopsWork: true },
        ),
      ),
    )
  withExamples(remove, [
    ['infer org delete acme', 'asks first; refused while work is unfinished'],
    ['infer org delete acme --force --yes', 'cancels unfinished work, asks nothing'],
  ])
}
