import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { dataDirectory } from '../../core/config.ts'
import { usage } from '../exit-codes.ts'
import { readDuration, readListen, withExamples } from '../options.ts'
import { serveCommand } from '../service/serve-command.ts'
import { openSystemd, unitPathOf } from '../service/systemd.ts'
import { type Scope, systemDataDir, unitOf } from '../service/unit.ts'
import type { Terminal } from '../terminal.ts'

interface Whose {
  user?: boolean
  system?: boolean
}
interface InstallOptions extends Whose {
  dataDir?: string
  config?: string
  listen?: string
  drainTimeout: string
  runAs?: string
  print?: boolean
}

const withScope = (command: Command): Command =>
  command
    .addOption(new Option('--system', 'the service of this machine (for root, unless --user)').conflicts('user'))
    .addOption(new Option('--user', 'the service of this user (for others, unless --system)'))

const scopeOf = ({ user, system }: Whose): Scope => (system || (!user && process.getuid?.() === 0) ? 'system' : 'user')

/** `infer service install|uninstall`: the server as a service of systemd, of the machine or of a user. */
export function define(command: Command, terminal: Terminal): void {
  const install = withScope(command.command('install'))
    .summary('write the unit')
    .description(
      'Writes a systemd unit that runs infer serve with few rights, restarts it when it fails and lets running requests end when it stops. Starts nothing; says what to do next. The service of the machine keeps its data in /var/lib/infer and cannot see home folders: keep models elsewhere.',
    )
    .option('--data-dir <path>', 'where the server keeps everything (/var/lib/infer, of a user ~/.local/share/infer)')
    .option('--config <path>', 'the configuration (infer.yaml in the data directory)')
    .option('--listen <address>', 'host:port to answer on (127.0.0.1:8787)', readListen)
    .option('--drain-timeout <time>', 'how long running requests may take to finish', checkedDuration, '60s')
    .option('--run-as <user>', 'an existing user for the service of the machine (one of its own)')
    .option('--print', 'only print the unit')
    .action((options: InstallOptions) => {
      const scope = scopeOf(options)
      const dataDir = dataDirOf(options.dataDir, scope)
      if (scope === 'user' && options.runAs !== undefined) throw usage('--run-as is for the service of the machine.')
      if (scope === 'system' && dataDir !== systemDataDir && options.runAs === undefined)
        throw usage(`Say with --run-as which user ${dataDir} belongs to, or leave --data-dir out.`)
      const unit = unitOf({
        scope,
        command: serveCommand(options, scope),
        dataDir,
        user: options.runAs,
        stopSeconds: Math.ceil(readDuration(options.drainTimeout) / 1000) + 30,
      })
      if (options.print) {
        terminal.stdout.write(unit)
        return
      }
      const systemd = openSystemd({ scope, environment: terminal.environment })
      const done = systemd.put(unit)
      const verbs = { new: 'Wrote', changed: 'Changed', same: 'Nothing has changed in' } as const
      terminal.print(`${verbs[done]} ${systemd.unitPath}.`)
      terminal.remark(nextSteps(scope, done === 'new'))
    })
  withExamples(install, [
    ['sudo infer service install --config /etc/infer.yaml', 'for the machine'],
    ['infer service install --user --listen 127.0.0.1:9000', 'for yourself'],
    ['infer service install --system --print', 'see the unit first'],
  ])

  const uninstall = withScope(command.command('uninstall'))
    .summary('stop the service and remove the unit')
    .description('Stops and disables the service and removes its unit. The data stays.')
    .action((options: Whose) => {
      const scope = scopeOf(options)
      const path = unitPathOf(scope, terminal.environment)
      const removed = openSystemd({ scope, environment: terminal.environment }).remove()
      terminal.print(removed ? `Stopped the service and removed ${path}.` : `There is no ${path}.`)
      if (removed) terminal.remark(`The data is still in ${dataDirOf(undefined, scope)}.`)
    })
  withExamples(uninstall, [['sudo infer service uninstall', 'of the machine']])
  withExamples(command, [
    ['sudo infer service install', 'write the unit, say what to do next'],
    ['sudo infer service uninstall', 'take it away; the data stays'],
  ])
}

const dataDirOf = (flag: string | undefined, scope: Scope): string =>
  scope === 'user' ? dataDirectory(flag) : flag === undefined ? systemDataDir : resolve(flag)

function checkedDuration(text: string): string {
  readDuration(text)
  return text
}

function nextSteps(scope: Scope, fresh: boolean): string {
  const [systemctl, journal, infer] =
    scope === 'system'
      ? ['sudo systemctl', 'journalctl --unit infer', `sudo infer status --data-dir ${systemDataDir}`]
      : ['systemctl --user', 'journalctl --user --unit infer', 'infer status']
  return [
    'Next:',
    fresh
      ? `  ${systemctl} enable --now infer     start it now and at every boot`
      : `  ${systemctl} restart infer     run it with what has changed`,
    `  ${journal} --follow     what it says`,
    `  ${infer}     what it does`,
    ...(scope === 'user' ? ['  loginctl enable-linger     keep it running when you log out'] : []),
  ].join('\n')
}
