/** Whom the service belongs to: the machine, or one user of it. */
export type Scope = 'system' | 'user'

export interface UnitFacts {
  scope: Scope
  /** Program and arguments that run the server, each as it is. */
  command: readonly string[]
  dataDir: string
  /** Who runs the service of the machine; without one a user that exists only while it runs. */
  user: string | undefined
  /** How long a stop may take: the drain and a little more, seconds. */
  stopSeconds: number
}

/** Where a system service keeps its data; systemd makes it, for a user that exists only while the service runs. */
export const systemDataDir = '/var/lib/infer'

/**
 * The unit. What is in it beyond the usual:
 * - ExecStop waits for the server, so that its engines live until running requests have ended: KillMode=control-group
 *   alone would send them SIGTERM at the same moment.
 * - OOMPolicy=continue: an engine that the kernel takes for its memory is one engine, not the service.
 * - No MemoryDenyWriteExecute, because V8 compiles at run time; no RestrictNamespaces, because engines run in a process
 *   namespace of their own, which is also what @mount is for.
 * - What a wrong configuration or a damaged database says (64, 65) is not said again every two seconds.
 */
export function unitOf({ scope, command, dataDir, user, stopSeconds }: UnitFacts): string {
  const system = scope === 'system'
  const own = system && dataDir === systemDataDir
  const service: string[] = [
    'Type=exec',
    `ExecStart=${command.map(word => quoted(word).replaceAll('$', () => '$$')).join(' ')}`,
    'ExecStop=-/bin/sh -c "kill -TERM ${MAINPID} && while kill -0 ${MAINPID} 2>/dev/null; do sleep 0.2; done"',
    `TimeoutStopSec=${stopSeconds}`,
    'KillMode=control-group',
    'Restart=on-failure',
    'RestartSec=2',
    'RestartPreventExitStatus=64 65',
    'OOMPolicy=continue',
    ...(system && user === undefined ? ['DynamicUser=yes', 'User=infer'] : []),
    ...(system && user !== undefined ? [`User=${quoted(user)}`] : []),
    ...(own ? ['StateDirectory=infer', 'StateDirectoryMode=0700'] : []),
    `Environment=${quoted(`INFER_DATA_DIR=${dataDir}`)}`,
    // It has no home: what it unpacks of itself, and models that it downloads, lie with its data.
    ...(system
      ? [
          `Environment=${quoted(`INFER_CACHE_DIR=${dataDir}/cache`)}`,
          `Environment=${quoted(`HF_HOME=${dataDir}/huggingface`)}`,
        ]
      : []),
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

/** What only the system's own systemd can do without a user namespace. */
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

/** A word for a unit file: quoted where it must be, with what systemd would expand written twice. In a command `$` too. */
function quoted(word: string): string {
  const plain = word.replaceAll('%', '%%')
  return /^[\w@%+=:,./$-]+$/.test(plain) ? plain : `"${plain.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}
