import { existsSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { packaged } from '../../core/assets.ts'
import { usageFailure } from '../terminal/exit-codes.ts'

/** A system service or a user service. */
export type UnitScope = 'system' | 'user'

export interface UnitFacts {
  scope: UnitScope
  /** Program and arguments that run the server, not quoted. */
  command: readonly string[]
  dataDir: string
  /** User of a system service; undefined for a dynamic user, which exists only while the service runs. */
  user: string | undefined
  /** Maximum time for stopping: the drain timeout and a margin, in seconds. */
  stopSeconds: number
}

/** Data directory of a system service. systemd creates it for the dynamic user. */
export const systemDataDir = '/var/lib/infer'

/** Executable and unit of the Debian package. */
export const packagedProgram = '/usr/bin/infer'
export const packagedUnitPath = '/usr/lib/systemd/system/infer.service'

/** How long a start may take: the first one of a new version copies and changes the database. */
const startSeconds = 900

/**
 * Returns the unit. Reasons for its unusual settings:
 * - KillMode=process: after a crash systemd must not end the engines, which the next start takes over (`adopt_grace`);
 *   control-group and mixed end them with the server. A stop leaves none, because the server ends them before it exits. After
 *   a server that had to be killed they end by themselves, 2 s after the grace.
 * - ExecStop waits for the server, so that the stop is over when the requests have ended.
 * - Type=notify: `systemctl start` ends when requests are answered, and fails when the configuration is invalid.
 * - NotifyAccess=all: after an upgrade without a gap the new server names itself as the main process.
 * - OOMPolicy=continue: when the kernel kills an engine for its memory, the service continues.
 * - No WatchdogSec: a restart would end running requests where nothing is wrong with the server. It looks at files of models
 *   without a thread of their own, and waits as long as network storage stalls (measured: 9 s of stall, 9 s without an answer,
 *   then all went on). And Node can tell systemd that it lives only by another program, which cannot start while engines use
 *   up TasksMax or memory.
 * - No MemoryDenyWriteExecute, because V8 compiles at run time. No RestrictNamespaces, and @mount in the filter,
 *   because each engine runs in its own process namespace.
 * - RestartPreventExitStatus: after exit codes 64 and 65 (invalid configuration, damaged database) a restart cannot
 *   help.
 */
export function unitOf({ scope, command, dataDir, user, stopSeconds }: UnitFacts): string {
  const system = scope === 'system'
  const own = system && dataDir === systemDataDir
  const service: string[] = [
    'Type=notify',
    'NotifyAccess=all',
    `TimeoutStartSec=${startSeconds}`,
    `ExecStart=${command.map(word => quoted(word).replaceAll('$', () => '$$')).join(' ')}`,
    'ExecStop=-/bin/sh -c "kill -TERM ${MAINPID} && while kill -0 ${MAINPID} 2>/dev/null; do sleep 0.2; done"',
    'ExecReload=/bin/sh -c "kill -HUP ${MAINPID}"',
    `TimeoutStopSec=${stopSeconds}`,
    'KillMode=process',
    'Restart=on-failure',
    'RestartSec=2',
    'RestartPreventExitStatus=64 65',
    'OOMPolicy=continue',
    ...(system && user === undefined ? ['DynamicUser=yes', 'User=infer'] : []),
    ...(system && user !== undefined ? [`User=${quoted(user)}`] : []),
    ...(own ? ['StateDirectory=infer', 'StateDirectoryMode=0700'] : []),
    `Environment=${quoted(`INFER_DATA_DIR=${dataDir}`)}`,
    // A dynamic user has no home folder, so extracted files and downloaded models are stored in the data directory.
    ...(system
      ? [
          `Environment=${quoted(`INFER_CACHE_DIR=${dataDir}/cache`)}`,
          `Environment=${quoted(`HF_HOME=${dataDir}/huggingface`)}`,
        ]
      : []),
    // One pool of the allocator for all threads: under load the server needs 30 MB less.
    'Environment=MALLOC_ARENA_MAX=1',
    'UMask=0077',
    '',
    '# Bounds',
    'LimitNOFILE=65536',
    'LimitMEMLOCK=infinity',
    'LimitCORE=0',
    'TasksMax=8192',
    'MemoryHigh=90%',
    '',
    '# Protection',
    'NoNewPrivileges=yes',
    'RestrictSUIDSGID=yes',
    'LockPersonality=yes',
    'RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK',
    'SystemCallArchitectures=native',
    'SystemCallFilter=@system-service @mount',
    'SystemCallErrorNumber=EPERM',
    ...(system ? protectionOfTheSystem(dataDir) : []),
  ]
  return `[Unit]
Description=infer, the inference platform of this machine
${system ? 'Wants=network-online.target\nAfter=network-online.target\n' : ''}StartLimitIntervalSec=300
StartLimitBurst=10

[Service]
${service.join('\n')}

[Install]
WantedBy=${system ? 'multi-user.target' : 'default.target'}
`
}

/** Settings that only the system's systemd can apply without a user namespace. */
const protectionOfTheSystem = (dataDir: string): string[] => [
  'ProtectSystem=strict',
  `ReadWritePaths=${quoted(dataDir)}`,
  'PrivateTmp=yes',
  'ProtectHome=yes',
  'ProtectKernelTunables=yes',
  'ProtectKernelModules=yes',
  'ProtectKernelLogs=yes',
  'ProtectClock=yes',
  'ProtectHostname=yes',
  'CapabilityBoundingSet=',
  'DevicePolicy=closed',
  'DeviceAllow=char-nvidia rw',
  'DeviceAllow=char-nvidia* rw',
  'DeviceAllow=char-drm rw',
]

/** Quotes a word for a unit file if necessary, and escapes `%`. The caller also escapes `$` in a command. */
function quoted(word: string): string {
  const plain = word.replaceAll('%', '%%')
  return /^[\w@%+=:,./$-]+$/.test(plain) ? plain : `"${plain.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

interface ServeFlags {
  config?: string
  listen?: string
  drainTimeout?: string
}

/** Returns program and arguments of `infer serve` for the way this program was started, with absolute paths. */
export function serveCommand({ config, listen, drainTimeout }: ServeFlags, scope: UnitScope): string[] {
  const configPath = config === undefined ? undefined : resolve(config)
  if (configPath !== undefined && !existsSync(configPath))
    throw usageFailure(`There is no configuration ${configPath}.`)
  const program = packaged
    ? [realpathSync(process.execPath)]
    : [realpathSync(process.execPath), ...process.execArgv, realpathSync(process.argv[1] ?? '')]
  if (scope === 'system')
    for (const path of [
      ...program.filter(part => part.startsWith('/')),
      ...(configPath === undefined ? [] : [configPath]),
    ])
      if (/^\/(home|root|run\/user|tmp|var\/tmp)\//.test(path))
        throw usageFailure(
          `A system service cannot read ${path}, because systemd hides home and temporary folders from it. Move the file, for example to /usr/local/bin or /etc, or install a user service with --user.`,
        )
  return [
    ...program,
    'serve',
    ...(configPath === undefined ? [] : ['--config', configPath]),
    ...(listen === undefined ? [] : ['--listen', listen]),
    ...(drainTimeout === undefined ? [] : ['--drain-timeout', drainTimeout]),
  ]
}
