import { type Command, Option } from '@commander-js/extra-typings'
import { maxSecretOverlapMs } from '../../core/webhooks/endpoints.ts'
import type { DeliveryView, WebhookView } from '../../core/webhooks/webhook-view.ts'
import { organizationIdFor, ownOrganization, withClient } from '../accounts/account-client.ts'
import { allPages, type Client, dataOf, memberOf } from '../client/client.ts'
import { orAbsent } from '../client/refusal.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { readCount, readDuration, readList, withDataDir, withExamples, withOrganization } from '../terminal/options.ts'
import { timeText } from '../terminal/quantities-text.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer webhook …`: webhooks of the server on this machine, or of the server at INFER_URL. */
export function define(command: Command, terminal: Terminal): void {
  defineEndpoints(command, terminal)
  defineSecrets(command, terminal)
  defineDeliveries(command, terminal)
  defineListen(command, terminal)
  withExamples(command, [
    ['infer webhook create https://example.com/hooks', 'register a URL'],
    ['infer webhook deliveries --status dead', 'what was given up'],
    ['infer webhook listen', 'receive events here'],
  ])
}

/** `infer webhook create|list|update|delete`: the registered URLs. */
function defineEndpoints(command: Command, terminal: Terminal): void {
  const create = withOrganization(command.command('create'))
    .summary('send events to a URL')
    .description('Registers a URL to which events are sent as signed messages, and shows its secret, this once.')
    .argument('<url>', 'http or https, at a public address')
    .option('--name <name>', 'what it is for', 'webhook')
    .option('--events <list>', 'types of events, such as job.completed or job.*', readList, ['*'])
    .option('--disabled', 'send nothing until it is enabled')
    .action(async (url, options) => {
      const { org, json, dataDir, name, events, disabled } = options
      await withWebhooks(dataDir, org, async ({ api }) => {
        const body = { name, url, event_types: events, enabled: disabled !== true }
        const created = await dataOf(api.POST('/api/webhooks', { body }))
        if (json) return terminal.json(created)
        terminal.print(created.signing_secret)
        terminal.remark(`${describe(created.webhook)} Keep the secret: it cannot be shown again.`)
      })
    })
  withExamples(create, [
    ['infer webhook create https://example.com/hooks --events "job.*"', 'events of jobs'],
    ['infer webhook create https://example.com/hooks --json', 'every event; for a program'],
  ])

  const list = withOrganization(command.command('list'))
    .summary('list webhooks, newest first')
    .description('Lists the registered URLs, newest first.')
    .action(async ({ org, json, dataDir }) => {
      await withWebhooks(dataDir, org, async ({ api }) => {
        const webhooks = await allPages(async (after, limit) => {
          const page = await dataOf(api.GET('/api/webhooks', { params: { query: { limit, after } } }))
          return { ...page, entries: page.webhooks }
        })
        if (json) terminal.json({ webhooks })
        else terminal.table(['id', 'name', 'state', 'events', 'url'], webhooks.map(rowOf))
      })
    })
  withExamples(list, [['infer webhook list', 'as a table']])

  const update = withOrganization(command.command('update'))
    .summary('change, disable or enable a webhook')
    .description('Changes a webhook. While it is disabled, its pending messages wait.')
    .argument('<id>', 'whe_…')
    .option('--name <name>', 'what it is for')
    .option('--url <url>', 'where events are sent')
    .option('--events <list>', 'types of events, such as job.completed or job.*', readList)
    .option('--enable', 'send events')
    .option('--disable', 'send no events')
    .action(async (id, options) => {
      const { org, json, dataDir, name, url, events: event_types, enable, disable } = options
      if (enable && disable) throw usageFailure('--enable and --disable exclude each other.')
      const enabled = enable ? true : disable ? false : undefined
      if ([name, url, event_types, enabled].every(one => one === undefined))
        throw usageFailure('Nothing is to be changed. See: infer webhook update --help')
      await withWebhooks(dataDir, org, async ({ api }) => {
        const body = { name, url, event_types, enabled }
        const webhook = await endpoint(id, memberOf(api.PATCH('/api/webhooks/{id}', { ...at(id), body }), 'webhook'))
        terminal.result(json, { webhook }, describe(webhook))
      })
    })
  withExamples(update, [['infer webhook update whe_… --disable', 'infer webhook list shows the ids']])

  const remove = withOrganization(command.command('delete'))
    .summary('delete a webhook')
    .description('Deletes a webhook and its messages, the pending ones included.')
    .argument('<id>', 'whe_…')
    .action(async (id, { org, json, dataDir }) => {
      await withWebhooks(dataDir, org, async ({ api }) => {
        await endpoint(id, api.DELETE('/api/webhooks/{id}', at(id)))
        terminal.result(json, { id, object: 'webhook_endpoint.deleted', deleted: true }, `Deleted ${id}.`)
      })
    })
  withExamples(remove, [['infer webhook delete whe_…', 'infer webhook list shows the ids']])
}

/** `infer webhook rotate|secret`: the secrets that sign the messages. */
function defineSecrets(command: Command, terminal: Terminal): void {
  const rotate = withOrganization(command.command('rotate'))
    .summary('make a new signing secret')
    .description(
      'Makes a new signing secret for a webhook and shows it, this once; without an id for the webhooks of requests.',
    )
    .argument('[id]', 'whe_…')
    .addOption(
      new Option('--overlap <time>', 'how long the old secret signs too, up to 7d')
        .argParser(readDuration)
        .default(86_400_000, '24h'),
    )
    .action(async (id, { org, json, dataDir, overlap }) => {
      if (overlap > maxSecretOverlapMs) throw usageFailure('--overlap is at most 7d.')
      await withWebhooks(dataDir, org, async (client, organization) => {
        const { api } = client
        const body = { overlap_seconds: Math.round(overlap / 1000) }
        const rotated =
          id === undefined
            ? await dataOf(api.POST(`${ownSecret}/rotate`, { ...(await secretOf(client, organization)), body }))
            : await endpoint(id, dataOf(api.POST('/api/webhooks/{id}/rotate', { ...at(id), body })))
        if (json) return terminal.json(rotated)
        terminal.print(rotated.signing_secret)
        const { previous_secret_until: until } = 'webhook' in rotated ? rotated.webhook : rotated
        terminal.remark(
          until === null
            ? 'The old secret signs no more.'
            : `The old secret signs too until ${timeText(until * 1000)}.`,
        )
      })
    })
  withExamples(rotate, [
    ['infer webhook rotate whe_…', 'messages have both signatures for a day'],
    ['infer webhook rotate --overlap 0s', 'the secret of the organization, at once'],
  ])

  const secret = withOrganization(command.command('secret'))
    .summary('show the secret of webhook_url')
    .description('Shows the secret that signs the webhooks of requests: the field webhook_url of jobs and executions.')
    .action(async ({ org, json, dataDir }) => {
      await withWebhooks(dataDir, org, async (client, organization) => {
        const shown = await dataOf(client.api.GET(ownSecret, await secretOf(client, organization)))
        terminal.result(json, shown, shown.signing_secret)
      })
    })
  withExamples(secret, [['infer webhook secret', 'for the program that receives the messages']])
}

/** `infer webhook test|deliveries|redeliver`: messages that are sent. */
function defineDeliveries(command: Command, terminal: Terminal): void {
  const test = withOrganization(command.command('test'))
    .summary('send a test message')
    .description(
      'Sends a signed message with {"test": true} and shows what came of it. Exits with 1 if it was refused.',
    )
    .argument('<id>', 'whe_…')
    .option('--type <type>', 'type of its event', 'job.completed')
    .action(async (id, { org, json, dataDir, type }) => {
      await withWebhooks(dataDir, org, async ({ api }) => {
        const body = { event_type: type }
        const tested = await endpoint(id, dataOf(api.POST('/api/webhooks/{id}/test', { ...at(id), body })))
        if (!tested.success) terminal.setExitCode(1)
        terminal.result(
          json,
          tested,
          tested.error ?? `The URL answered ${tested.status_code} in ${tested.duration_ms} ms.`,
        )
      })
    })
  withExamples(test, [['infer webhook test whe_…', 'infer webhook list shows the ids']])

  const deliveries = withOrganization(command.command('deliveries'))
    .summary('list sent and pending messages')
    .description('Lists messages, newest first, each with its last attempt: of a webhook, or of all and of requests.')
    .argument('[id]', 'whe_…')
    .addOption(new Option('--status <status>', 'only these').choices(['pending', 'delivered', 'dead']))
    .option('--limit <count>', 'maximum number, 1 to 1000', readCount(1, 1_000), 20)
    .action(async (id, options) => {
      const { org, json, dataDir, status, limit } = options
      await withWebhooks(dataDir, org, async ({ api }) => {
        const page = async (after: string | undefined, size: number) => {
          const query = { limit: size, status, after }
          const { deliveries, ...more } = await (id === undefined
            ? dataOf(api.GET('/api/webhook-deliveries', { params: { query } }))
            : endpoint(id, dataOf(api.GET('/api/webhooks/{id}/deliveries', { params: { path: { id }, query } }))))
          return { ...more, entries: deliveries }
        }
        const found = await allPages(page, limit, largestDeliveryPage)
        if (json) terminal.json({ deliveries: found })
        else terminal.table(['id', 'event', 'status', 'attempt', 'answer', 'next', 'url'], found.map(deliveryRow))
      })
    })
  withExamples(deliveries, [
    ['infer webhook deliveries --status dead', 'what was given up'],
    ['infer webhook deliveries whe_… --json', 'with the bodies'],
  ])

  const redeliver = withOrganization(command.command('redeliver'))
    .summary('send a message again')
    .description('Sends a message again, with the same id and body, whether it was delivered or is dead.')
    .argument('<id>', 'msg_…')
    .action(async (id, { org, json, dataDir }) => {
      await withWebhooks(dataDir, org, async ({ api }) => {
        const params = { path: { delivery: id } }
        const sent = memberOf(api.POST('/api/webhook-deliveries/{delivery}/redeliver', { params }), 'delivery')
        const delivery = await orAbsent(sent, `There is no delivery '${id}' here. See: infer webhook deliveries`)
        terminal.result(json, { delivery }, `${id} is sent again to ${delivery.url}.`)
      })
    })
  withExamples(redeliver, [['infer webhook redeliver msg_…', 'infer webhook deliveries shows the ids']])
}

/** `infer webhook listen`: receives events on this machine. */
function defineListen(command: Command, terminal: Terminal): void {
  const listen = withDataDir(command.command('listen'))
    .summary('receive events on this machine')
    .description(
      'Prints the events of the organization as the messages that webhooks have, and with --forward-to posts them to a program on this machine, signed with a secret that it prints. Follows the event stream of the server, so that no address of this machine has to be reachable.',
    )
    .option('--forward-to <url>', 'where to post each message, such as http://127.0.0.1:3000/hooks')
    .option('--events <list>', 'types of events, such as job.completed or job.*; default: all', readList)
    .option('--json', 'print one JSON object per line')
    .action(async ({ forwardTo, events, json, dataDir }) => {
      if (forwardTo !== undefined && !/^https?:\/\/\S+$/.test(forwardTo))
        throw usageFailure('--forward-to is a URL such as http://127.0.0.1:3000/hooks.')
      const [{ listen }, { openClient }] = [await import('../webhooks/listen.ts'), await import('../client/client.ts')]
      const client = openClient(dataDir)
      await interruptible(terminal, signal =>
        listen(client, terminal, { forwardTo, types: events, json: json === true, signal }),
      )
    })
  withExamples(listen, [
    ['infer webhook listen', 'what a webhook would get'],
    ['infer webhook listen --forward-to http://127.0.0.1:3000/hooks', 'to develop a receiver'],
  ])
}

/** Deliveries are large: they have the bodies of the messages. */
const largestDeliveryPage = 50
const ownSecret = '/api/organizations/{organization}/webhook-secret'

const at = (id: string) => ({ params: { path: { id } } })
const endpoint = <T>(id: string, call: Promise<T>): Promise<T> =>
  orAbsent(call, `There is no webhook endpoint '${id}' here. See: infer webhook list`)

/** The path of the secret that signs the webhooks of requests. */
const secretOf = async (client: Client, organization: string | undefined) => ({
  params: { path: { organization: organization ?? (await ownOrganization(client)).id } },
})

/**
 * Runs work with the webhooks of an organization, by its id or name: of a server, or of the data directory. A server
 * knows those of its token's organization only. The token needs the scopes admin:read and admin:write.
 */
const withWebhooks = (
  dataDir: string | undefined,
  idOrName: string | undefined,
  work: (client: Client, organization: string | undefined) => Promise<void>,
): Promise<void> =>
  withClient(dataDir, async client => {
    const organization = await organizationOf(client, idOrName)
    await work(client.isInProcess && organization !== undefined ? client.withToken(organization) : client, organization)
  })

/**
 * The organization with this id or name, or undefined for that of the client's token. Throws usage if a server's token
 * belongs to another one, and not_found if it was deleted.
 */
async function organizationOf(client: Client, idOrName: string | undefined): Promise<string | undefined> {
  if (client.isInProcess) return organizationIdFor(client, idOrName, { mayBeDeleted: false })
  if (idOrName === undefined) return undefined
  const { id, name } = await ownOrganization(client)
  if (idOrName === id || idOrName === name) return id
  throw usageFailure(`INFER_TOKEN belongs to the organization '${name}' (${id}), not to '${idOrName}'.`)
}

const stateOf = ({ enabled, disabled_reason }: WebhookView): string =>
  enabled ? 'enabled' : disabled_reason === 'gone' ? 'disabled (410)' : 'disabled'

const describe = (webhook: WebhookView): string =>
  `Webhook ${webhook.name} (${webhook.id}), ${stateOf(webhook)}: ${webhook.event_types.join(' ')} to ${webhook.url}.`

const rowOf = (webhook: WebhookView): string[] => [
  webhook.id,
  webhook.name,
  stateOf(webhook),
  webhook.event_types.join(' '),
  webhook.url,
]

const deliveryRow = (delivery: DeliveryView): string[] => [
  delivery.id,
  delivery.type,
  delivery.status,
  String(delivery.attempt),
  delivery.status_code === null ? (delivery.error === null ? '' : 'none') : String(delivery.status_code),
  delivery.next_attempt_at === null ? '' : timeText(delivery.next_attempt_at * 1000),
  delivery.url,
]
