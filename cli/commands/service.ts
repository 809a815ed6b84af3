import { resolve } from 'node:path'
import { type Command, Option, type OptionValues } from '@commander-js/extra-typings'
import { dataDirectory } from '../../core/config.ts'
import { runningServer } from '../client/find-server.ts'
import { openSystemd, unitPathOf } from '../service/systemd.ts'
import { serveCommand, systemDataDir, type UnitScope, unitOf } from '../service/unit.ts'
import { readUnit, replaceExecutable } from '../service/upgrade.ts'
import { replaceServer } from '../takeover/replace-server.ts'
import { RestartNeeded } from '../takeover/restart-needed.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { type NoOptions, type OptionsOf, readDuration, readListen, withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

const withScope = <Args extends unknown[], Options extends OptionValues>(command: Command<Args, Options>) =>
  command
    .addOption(new Option('--system', 'a system service; the default for root').conflicts('user'))
    .addOption(new Option('--user', 'a user service; the default for other users'))

const scopeOf = ({ user, system }: OptionsOf<typeof withScope<[], NoOptions>>): UnitScope =>
  system || (!user && process.getuid?.() === 0) ? 'system' : 'user'

/** `infer service install|upgrade|uninstall`: the server as a systemd system service or user service. */
export function define(command: Command, terminal: Terminal): void {
  const install = withScope(command.command('install'))
    .summary('write the unit')
    .description(
      'Writes a systemd unit that runs infer serve with few privileges, restarts it after a failure and lets running requests finish when it stops. Does not start the service, and prints the next commands. A system service keeps its data in /var/lib/infer and cannot read home folders: keep models elsewhere.',
    )
    .option('--data-dir <path>', 'data directory; default: /var/lib/infer, for a user ~/.local/share/infer')
    .option('--config <path>', 'the configuration; default: infer.yaml in the data directory')
    .option('--listen <address>', 'host:port to listen on; default: 127.0.0.1:8787', readListen)
    .option('--drain-timeout <time>', 'how long running requests may take to finish', checkedDuration, '60s')
    .option('--run-as <user>', 'an existing user for a system service; default: a dynamic user')
    .option('--print', 'only print the unit')
    .action(options => {
      const scope = scopeOf(options)
      const dataDir = dataDirOf(options.dataDir, scope)
      if (scope === 'user' && options.runAs !== undefined) throw usageFailure('--run-as is only for a system service.')
      if (scope === 'system' && dataDir !== systemDataDir && options.runAs === undefined)
        throw usageFailure(`Give the owner of ${dataDir} with --run-as, or remove --data-dir.`)
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
      const change = systemd.put(unit)
      const verbs = { new: 'Wrote', changed: 'Changed', same: 'Nothing changed in' } as const
      terminal.print(`${verbs[change]} ${systemd.unitPath}.`)
      terminal.remark(nextSteps(scope, change === 'new'))
    })
  withExamples(install, [
    ['sudo infer service install --config /etc/infer.yaml', 'a system service'],
    ['infer service install --user --listen 127.0.0.1:9000', 'a user service'],
    ['infer service install --system --print', 'only show the unit'],
  ])

  const upgrade = withScope(command.command('upgrade'))
    .summary('let a new version take over without a gap')
    .description(
      'Replaces the executable of the unit if one is given, keeps the old one beside it as .previous, and lets the new version take the place of the running server: no request fails. If the new version cannot start, the old one goes on and its executable is put back. The Debian package does this when it is upgraded.',
    )
    .option('--executable <path>', 'the new executable; default: the one of the unit, replaced already')
    .option('--or-restart', 'restart the service if its version cannot hand over; requests have the drain timeout')
    .option('--json', 'print JSON')
    .action(async ({ executable, orRestart, json, ...options }) => {
      const scope = scopeOf(options)
      const systemd = openSystemd({ scope, environment: terminal.environment })
      const { program, dataDir, isPackaged } = readUnit(systemd.unit())
      if (executable !== undefined && isPackaged)
        throw usageFailure(
          `${program[0]} belongs to the Debian package. Install the new package instead, which does the same: apt-get install ./infer_VERSION.deb`,
        )
      const running = runningServer(dataDir)
      const start = `systemctl ${scope === 'user' ? '--user ' : ''}start infer`
      if (!running && !orRestart) throw refused('conflict', `No server runs on ${dataDir}. Start the service: ${start}`)
      const [target, ...first] = program
      if (executable !== undefined && first.length > 0)
        throw usageFailure(
          `The unit runs infer from files (${program.join(' ')}). Replace them, and leave out --executable.`,
        )
      const replaced = executable === undefined ? undefined : replaceExecutable(resolve(executable), target!)
      const fallback = replaced && [replaced.previous, ...first]
      try {
        if (running)
          return await replaceServer({ dataDir, pid: running.pid, flags: {}, program, fallback, json }, terminal)
      } catch (thrown) {
        if (!orRestart || !(thrown instanceof RestartNeeded)) {
          replaced?.undo()
          throw thrown
        }
        terminal.remark(`${thrown.message} Restarting the service.`)
      }
      restart(systemd, replaced?.undo)
      const pid = runningServer(dataDir)?.pid ?? null
      if (running && pid === running.pid) {
        replaced?.undo()
        throw refused(
          'conflict',
          `The running server (process ${pid}) is no part of the service, which is stopped. Stop it, then start the service: ${start}`,
        )
      }
      terminal.result(
        json,
        { pid, previous_pid: running?.pid ?? null },
        pid === null
          ? `${replaced ? 'The executable was replaced. ' : ''}No server runs on ${dataDir}, and the service is stopped, so nothing was restarted. Start it: ${start}`
          : `The service was restarted (process ${pid}).`,
      )
    })
  withExamples(upgrade, [
    ['sudo infer service upgrade --executable ./infer-linux-x64', 'the system service'],
    ['infer service upgrade --user', 'after its executable was replaced'],
    ['sudo infer service upgrade --or-restart', 'for scripts, where versions may be far apart'],
  ])

  const uninstall = withScope(command.command('uninstall'))
    .summary('stop the service and remove the unit')
    .description('Stops and disables the service and removes its unit. The data stays.')
    .action(options => {
      const scope = scopeOf(options)
      const path = unitPathOf(scope, terminal.environment)
      const removed = openSystemd({ scope, environment: terminal.environment }).remove()
      terminal.print(removed ? `Stopped the service and removed ${path}.` : `There is no ${path}.`)
      if (removed) terminal.remark(`The data is still in ${dataDirOf(undefined, scope)}.`)
    })
  withExamples(uninstall, [['sudo infer service uninstall', 'the system service']])
  withExamples(command, [
    ['sudo infer service install', 'write the unit, print the next commands'],
    ['sudo infer service upgrade --executable ./infer-linux-x64', 'a new version takes over'],
    ['sudo infer service uninstall', 'remove the unit; the data stays'],
  ])
}

/** Restarts the service if it runs. If that fails, puts the old executable back and starts that. */
function restart(systemd: ReturnType<typeof openSystemd>, undo: (() => void) | undefined): void {
  try {
    systemd.restart()
  } catch (cause) {
    if (!undo) throw cause
    undo()
    const failed = (what: string, { message }: Error) => refused('conflict', `${what}: ${message}`, { cause })
    try {
      systemd.start()
    } catch (thrown) {
      const what = 'The new version does not start, nor does the old executable, which was put back'
      throw failed(what, thrown as Error)
    }
    const what = 'The new version does not start, so the old executable was put back and started'
    throw failed(what, cause as Error)
  }
}

const dataDirOf = (flag: string | undefined, scope: UnitScope): string =>
  scope === 'user' ? dataDirectory(flag) : flag === undefined ? systemDataDir : resolve(flag)

function checkedDuration(text: string): string {
  readDuration(text)
  return text
}

function nextSteps(scope: UnitScope, isNew: boolean): string {
  const [systemctl, journal, infer] =
    scope === 'system'
      ? ['sudo systemctl', 'journalctl --unit infer', `sudo infer status --data-dir ${systemDataDir}`]
      : ['systemctl --user', 'journalctl --user --unit infer', 'infer status']
  return [
    'Next:',
    isNew
      ? `  ${systemctl} enable --now infer     start it now and at every boot`
      : `  ${systemctl} restart infer     apply the changes`,
    `  ${journal} --follow     read its log`,
    `  ${infer}     see its state`,
    ...(scope === 'user' ? ['  loginctl enable-linger     keep it running when you log out'] : []),
  ].join('\n')
}
