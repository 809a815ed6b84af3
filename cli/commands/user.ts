import { type Command, Option } from '@commander-js/extra-typings'
import { UserChange, UserCreate, type UserView } from '../../core/accounts/user-view.ts'
import { roles } from '../../core/store/store.ts'
import { forced, organizationFor, userFor, usersOf, withClient } from '../accounts/account-client.ts'
import { dataOf, memberOf } from '../client/client.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { withExamples, withOrganization } from '../terminal/options.ts'
import { timeText } from '../terminal/quantities-text.ts'
import { confirmDestructive } from '../terminal/standard-input.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

const members = '/api/organizations/{organization}/members'

/** Returns what was read of the fields. Throws usage with the first mistake. */
function checked<T>(
  read: { success: true; data: T } | { success: false; error: { issues: { message: string }[] } },
): T {
  if (read.success) return read.data
  throw usageFailure(read.error.issues[0]!.message)
}

const roleOption = (description: string): Option => new Option('--role <role>', description).choices(roles)

/** `infer user …`: users of an organization, on this machine or of the server at INFER_URL. */
export function define(command: Command, terminal: Terminal): void {
  const add = withOrganization(command.command('add'))
    .summary('add a user to an organization')
    .description('Adds a user to an organization. infer token create --user creates tokens for the user.')
    .argument('<email>', 'e-mail address; unique in the organization')
    .option('--name <name>', 'default: the part of the address before @')
    .addOption(roleOption('bounds the scopes of the tokens').default('member'))
    .action(async (email, { org, name, role, json, dataDir }) => {
      await withClient(dataDir, async client => {
        const { id } = await organizationFor(client, org)
        const body = checked(UserCreate.safeParse({ email, name: name ?? email.split('@')[0]!, role }))
        const params = { path: { organization: id } }
        const user = await memberOf(client.api.POST(members, { params, body }), 'user')
        if (json) return terminal.json({ user })
        terminal.print(`Added ${user.name} (${user.id}) as ${user.role}.`)
        terminal.remark(`Create a token: infer token create --org ${id} --user ${user.email}`)
      })
    })
  withExamples(add, [
    ['infer user add ada@example.com --org acme', 'as member'],
    ['infer user add ada@example.com --name "Ada Lovelace" --role owner', 'with a name'],
  ])

  const list = withOrganization(command.command('list'))
    .summary('list users, newest first')
    .description('Lists users with their roles, tokens and last use, newest first.')
    .action(async ({ org, json, dataDir }) => {
      await withClient(dataDir, async client => {
        const users = await usersOf(client, (await organizationFor(client, org)).id)
        if (json) terminal.json({ users })
        else terminal.table(['id', 'e-mail', 'name', 'role', 'tokens', 'last used'], users.map(rowOf))
      })
    })
  withExamples(list, [['infer user list --org acme', 'as a table']])

  const update = withOrganization(command.command('update'))
    .summary('change name, address or role')
    .description(
      'Changes name, e-mail address or role of a user. With a lower role the tokens of the user lose the scopes that it does not allow, at once and for good.',
    )
    .argument('<user>', 'id or e-mail address')
    .option('--name <name>', 'the new name')
    .option('--email <address>', 'the new e-mail address')
    .addOption(roleOption('the new role'))
    .option('--force', 'also if the last tokens with admin:write are lost')
    .action(async (text, { org, name, email, role, force = false, json, dataDir }) => {
      if (name === undefined && email === undefined && role === undefined)
        throw usageFailure('Nothing to change. Give at least one of --name, --email and --role.')
      await withClient(dataDir, async client => {
        const { id } = await organizationFor(client, org)
        const found = await userFor(client, id, text)
        const body = checked(UserChange.safeParse({ name, email, role }))
        const params = { path: { organization: id, user: found.id }, ...forced(force) }
        const done = await dataOf(client.api.PATCH(`${members}/{user}`, { params, body }))
        if (json) return terminal.json(done)
        terminal.print(`Updated ${done.user.name} (${done.user.role}).`)
        if (done.tokens_narrowed + done.tokens_revoked > 0)
          terminal.remark(`${done.tokens_narrowed} tokens lost scopes, ${done.tokens_revoked} were revoked.`)
      })
    })
  withExamples(update, [['infer user update ada@example.com --role admin', 'a new role']])

  const remove = withOrganization(command.command('remove'))
    .summary('remove a user and revoke the tokens')
    .description('Removes a user from an organization and revokes the tokens of the user. Jobs, files and usage stay.')
    .argument('<user>', 'id or e-mail address')
    .option('--force', 'also if the last tokens with admin:write are lost')
    .option('--yes', 'do not ask')
    .action((text, { org, force = false, yes, json, dataDir }) =>
      interruptible(terminal, signal =>
        withClient(dataDir, async client => {
          const { id } = await organizationFor(client, org)
          const user = await userFor(client, id, text)
          const question = `Remove ${user.name} (${user.email}) and revoke ${user.active_tokens} tokens?`
          if (!(await confirmDestructive(question, yes, terminal, signal))) return
          const params = { path: { organization: id, user: user.id }, ...forced(force) }
          const { tokens_revoked } = await dataOf(client.api.DELETE(`${members}/{user}`, { params }))
          terminal.result(
            json,
            { id: user.id, object: 'user', deleted: true, tokens_revoked },
            `Removed ${user.name}. ${tokens_revoked} tokens were revoked.`,
          )
        }),
      ),
    )
  withExamples(remove, [['infer user remove ada@example.com --org acme --yes', 'without confirmation']])
  withExamples(command, [
    ['infer user add ada@example.com --org acme', 'add a user'],
    ['infer user update ada@example.com --role admin', 'change the role'],
    ['infer user list --org acme', 'list users'],
  ])
}

const rowOf = (user: UserView): string[] => [
  user.id,
  printable(user.email),
  printable(user.name),
  user.role,
  String(user.active_tokens),
  timeText(user.last_used_at === null ? null : user.last_used_at * 1000),
]
