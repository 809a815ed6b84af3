import { type Command, Option } from '@commander-js/extra-typings'
import { maxOverlapMs } from '../../core/accounts/accounts.ts'
import type { TokenView } from '../../core/accounts/token-fields.ts'
import { dataDirectory } from '../../core/config.ts'
import type { Scope } from '../../core/store/store.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import {
  nothing,
  orNull,
  readDuration,
  readExpiry,
  readList,
  readScopes,
  withCommon,
  withExamples,
  withOrganization,
} from '../terminal/options.ts'
import { timeText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { withTokenClient } from '../tokens/token-client.ts'
import { tokenFields, withLimits } from '../tokens/token-options.ts'

/** `infer token …`: tokens of the server on this machine, or of the server at INFER_URL. */
export function define(command: Command, terminal: Terminal): void {
  defineCreate(command, terminal)
  defineUpdate(command, terminal)
  defineOthers(command, terminal)
  withExamples(command, [
    ['infer token create --name app', 'create a token'],
    ['infer token list', 'list tokens'],
    ['infer token show', 'what is left of your limits'],
    ['infer token update tok_… --spend-limit 50', 'change a limit'],
    ['infer token revoke tok_…', 'revoke a token'],
    ['infer token scan .', 'look for leaked secrets'],
  ])
}

/** `infer token create`: creates a token. */
function defineCreate(command: Command, terminal: Terminal): void {
  const create = withLimits(
    withOrganization(command.command('create'))
      .summary('create a token and show its secret once')
      .description('Creates a token and shows its secret. The secret cannot be shown again.')
      .option('--name <name>', 'what it is for', 'token')
      .option('--scopes <list>', 'its permissions: user:read, user:write, admin:read, admin:write', readScopes, [
        'user:read',
        'user:write',
      ] satisfies Scope[])
      .option(
        '--expires <when>',
        '90d, a date or never; default: 90d with an admin scope, else never',
        (text: string) => readExpiry(text),
      )
      .option('--models <list>', 'models that it may use, such as qwen/*; default: all', readList)
      .option('--user <user>', 'who owns it: id or e-mail address of a user of the organization'),
    { removable: false },
  ).action(async ({ org, json, dataDir, name, scopes, expires, models, user, ...limits }) => {
    if (name.trim() === '' || name.length > 128) throw usageFailure('The name of a token has 1 to 128 characters.')
    await withTokenClient(dataDir, async client => {
      const settings = { organization: org, name, scopes, expires, models, user, ...tokenFields(limits) }
      const created = await client.create(settings)
      if (json) terminal.json(created)
      else {
        terminal.print(created.secret)
        terminal.remark(`${describe(created.token)} Keep the secret: it cannot be shown again.`)
      }
    })
  })
  withExamples(create, [
    ['infer token create --name app', 'for an application'],
    ['infer token create --name ci --expires 90d --models "qwen/*"', 'short-lived, for some models'],
    ['infer token create --user ada@example.com --spend-limit 25', 'for a user, with a budget'],
    ['infer token create --org acme --scopes admin:read,admin:write --json', 'to manage tokens'],
  ])
}

/** `infer token list|show|revoke|rotate|scan`. */
function defineOthers(command: Command, terminal: Terminal): void {
  const list = withOrganization(command.command('list'))
    .summary('list tokens, newest first')
    .description('Lists tokens, newest first. The server does not know their secrets.')
    .addOption(new Option('--status <status>', 'only these').choices(['active', 'disabled', 'revoked', 'expired']))
    .action(async ({ org, json, dataDir, status }) => {
      await withTokenClient(dataDir, async client => {
        const { tokens, owners } = await client.list({ organization: org, status })
        if (json) return terminal.json({ tokens })
        const head = ['id', 'name', 'owner', 'status', 'secret', 'expires', 'last used', 'scopes']
        terminal.table(
          head,
          tokens.map(token => rowOf(token, owners)),
        )
      })
    })
  withExamples(list, [
    ['infer token list', 'as a table'],
    ['infer token list --org acme --status active --json', 'for a program'],
  ])

  const show = withOrganization(command.command('show'))
    .summary('show a token, and what is left of its limits')
    .description(
      'Shows a token. Without an id it is the one in use, with what is left of its limits and of those of its organization; every token may ask for this.',
    )
    .argument('[id]', 'tok_…; default: the token in use')
    .action(async (id, { org, json, dataDir }) => {
      const { showOwnToken, showToken } = await import('../tokens/show.ts')
      if (id === undefined) {
        const { openClient } = await import('../client/client.ts')
        return showOwnToken(openClient(dataDir), terminal, json === true)
      }
      await withTokenClient(dataDir, async client => {
        const token = await client.get(id, org)
        if (json) terminal.json({ token })
        else showToken(token, terminal)
      })
    })
  withExamples(show, [
    ['infer token show', 'the one in use, and what is left of its budget'],
    ['infer token show tok_…', 'infer token list shows the ids'],
  ])

  const revoke = withOrganization(command.command('revoke'))
    .summary('revoke a token at once')
    .description(
      'Revokes a token at once. Its requests, jobs, executions and batches go on, unless they are cancelled.',
    )
    .argument('<id>', 'tok_…')
    .option('--force', 'also revoke the last token that can manage tokens, or the one in use')
    .option('--cancel-work', 'also cancel the jobs, executions and batches that it began')
    .action(async (id, { org, json, dataDir, force = false, cancelWork = false }) => {
      await withTokenClient(dataDir, async client => {
        const ended = await client.revoke(id, { organization: org, force, cancelWork })
        const { jobs_cancelled: jobs, executions_cancelled: executions, batches_cancelled: batches } = ended
        const cancelled = ` Cancelled: ${jobs} jobs, ${executions} executions, ${batches} batches.`
        terminal.result(json, ended, `Revoked ${id}.${cancelWork ? cancelled : ''}`)
      })
    })
  withExamples(revoke, [
    ['infer token revoke tok_…', 'infer token list shows the ids'],
    ['infer token revoke tok_… --cancel-work', 'end its work too'],
  ])

  const rotate = withOrganization(command.command('rotate'))
    .summary('give a token a new secret')
    .description('Gives a token a new secret. Its permissions stay the same.')
    .argument('<id>', 'tok_…')
    .addOption(
      new Option('--overlap <time>', 'how long the old secret stays valid, up to 24h')
        .argParser(readDuration)
        .default(0, '0s'),
    )
    .action(async (id, { org, json, dataDir, overlap }) => {
      if (overlap > maxOverlapMs) throw usageFailure('--overlap is at most 24h.')
      await withTokenClient(dataDir, async client => {
        const rotated = await client.rotate(id, { organization: org, overlapMs: overlap })
        if (json) terminal.json(rotated)
        else {
          terminal.print(rotated.secret)
          const oldSecret =
            overlap === 0
              ? 'The old secret is no longer accepted.'
              : `The old secret works until ${timeText(rotated.previous_valid_until * 1000)}.`
          terminal.remark(`${describe(rotated.token)} ${oldSecret} Keep the new one: it cannot be shown again.`)
        }
      })
    })
  withExamples(rotate, [
    ['infer token rotate tok_…', 'the old secret becomes invalid at once'],
    ['infer token rotate tok_… --overlap 1h', 'the old secret stays valid for an hour'],
  ])

  const scan = withCommon(command.command('scan'))
    .summary('find secrets in files')
    .description(
      'Finds secrets in files and folders, including .git and binary files, and shows which are valid. Exits with 1 if one is. Does not read inside compressed files.',
    )
    .argument('<paths...>', 'files and folders; - is standard input')
    .action(async (paths, { json, dataDir }) => {
      const { scan: run } = await import('../tokens/scan.ts')
      await run(terminal, paths, { dataDir: dataDirectory(dataDir), json: json === true })
    })
  withExamples(scan, [
    ['infer token scan .', 'everything below this folder'],
    ['git log -p | infer token scan -', 'the history of a repository'],
  ])
}

const time = (seconds: number | null): string => timeText(seconds === null ? null : seconds * 1000)

const describe = (token: TokenView): string =>
  `Token ${token.name} (${token.id}), ${token.scopes.join(' ')}, ${token.expires_at === null ? 'does not expire' : `until ${time(token.expires_at)}`}.`

const rowOf = (token: TokenView, owners: ReadonlyMap<string, string>): string[] => [
  token.id,
  printable(token.name),
  token.user_id === null ? '-' : (owners.get(token.user_id) ?? token.user_id),
  token.status,
  token.hint,
  time(token.expires_at),
  time(token.last_used_at),
  token.scopes.join(' '),
]

/** `infer token update <id>`: changes what is given; its secret stays the same. */
function defineUpdate(command: Command, terminal: Terminal): void {
  const update = withLimits(
    withOrganization(command.command('update'))
      .summary('change name, rights or limits of a token')
      .description('Changes a token from its next request on. Its secret stays the same.')
      .argument('<id>', 'tok_…')
      .option('--name <name>', 'its new name')
      .option('--scopes <list>', 'its permissions: user:read, user:write, admin:read, admin:write', readScopes)
      .option('--models <list>', 'models that it may use, such as qwen/*; none for all', text =>
        text === nothing ? nothing : readList(text),
      )
      .option('--user <user>', 'who owns it: id or e-mail address of a user; none for nobody')
      .option('--expires <when>', '90d, a date or never', (text: string) => readExpiry(text))
      .addOption(
        new Option('--status <status>', 'disabled: refused until it is active again').choices(['active', 'disabled']),
      ),
    { removable: true },
  )
    .option('--force', 'also if it is the last token that can manage tokens')
    .action(async (id, { org, json, dataDir, force, ...options }) => {
      const { name, scopes, models, user, expires, status, ...limits } = options
      if (Object.keys(options).length === 0)
        throw usageFailure('Nothing to change. Give at least one option, such as --name.')
      if (name !== undefined && (name.trim() === '' || name.length > 128))
        throw usageFailure('The name of a token has 1 to 128 characters.')
      await withTokenClient(dataDir, async client => {
        const token = await client.update(id, {
          organization: org,
          force: force === true,
          name,
          scopes,
          models: orNull(models),
          user: orNull(user),
          expires,
          status,
          ...tokenFields(limits),
        })
        terminal.result(json, { token }, `Updated the token ${token.name} (${token.id}).`)
      })
    })
  withExamples(update, [
    ['infer token update tok_… --spend-limit 50 --models none', 'more money, all models'],
    ['infer token update tok_… --allowed-hours "Mon-Fri 08:00-18:00 Europe/Berlin"', 'at work only'],
    ['infer token update tok_… --status disabled', 'switch it off for a while'],
  ])
}
