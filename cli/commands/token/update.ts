import { type Command, Option } from 'commander'
import type { Scope } from '../../../core/store/store.ts'
import { usageFailure } from '../../terminal/exit-codes.ts'
import {
  nothing,
  type OrganizationOptions,
  orNull,
  readExpiry,
  readList,
  readScopes,
  withExamples,
  withOrganization,
} from '../../terminal/options.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { withTokenClient } from '../../tokens/token-client.ts'
import { type LimitOptions, tokenFields, withLimits } from './options.ts'

interface Options extends OrganizationOptions, LimitOptions {
  name?: string
  scopes?: Scope[]
  models?: string[] | typeof nothing
  user?: string
  expires?: number | 'never'
  status?: 'active' | 'disabled'
  force?: boolean
}

/** `infer token update <id>`: changes what is given; its secret stays the same. */
export function define(command: Command, terminal: Terminal): void {
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
    .action(async (id: string, { org, json, dataDir, force, ...options }: Options) => {
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
          expiresAt: expires === 'never' ? null : expires,
          status,
          ...tokenFields(limits),
        })
        if (json) terminal.json({ token })
        else terminal.print(`Updated the token ${token.name} (${token.id}).`)
      })
    })
  withExamples(update, [
    ['infer token update tok_… --spend-limit 50 --models none', 'more money, all models'],
    ['infer token update tok_… --allowed-hours "Mon-Fri 08:00-18:00 Europe/Berlin"', 'at work only'],
    ['infer token update tok_… --status disabled', 'switch it off for a while'],
  ])
}
