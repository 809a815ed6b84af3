import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { environmentVariables } from '../../core/environment-variables.ts'
import { wrapText } from '../terminal/styled-line.ts'

/**
 * Adds environment, files and exit codes to the end of the help of a command and its subcommands, after the examples.
 * Call it when the command is complete.
 */
export function addManual(command: CommandUnknownOpts, width: number, name = command.name()): void {
  addOwn(command, width, name)
  for (const subcommand of command.commands) addManual(subcommand, width, name)
}

/** Adds the same to one command, without its subcommands. */
export function addOwn(command: CommandUnknownOpts, width: number, name = command.name()): void {
  const facts = commandFacts[name]
  if (!facts) throw new Error(`cli/help/manual.ts has no entry for '${name}'`)
  const guide = guideOf[name] === undefined ? '' : `\n\nGuide: infer help ${guideOf[name]}`
  command.addHelpText('after', `\n${manualOf(facts, width)}${guide}`)
}

/** Formats the sections as text. */
function manualOf({ environment, files: known, exits: codes }: CommandFacts, width: number): string {
  const inDirectory = known.some(name => !/^[/~]/.test(name))
  const sections: [title: string, rows: [term: string, text: string][]][] = [
    ['Environment:', environment.map(name => [name, environmentVariables[name].meaning])],
    [`Files${inDirectory ? ' (in the data directory)' : ''}:`, known.map(name => [name, files[name]])],
    [
      'Exit codes:',
      (Object.keys(exits) as unknown as (keyof typeof exits)[])
        .filter(code => codes[code] !== undefined)
        .map(code => [String(code), codes[code]!]),
    ],
  ]
  return sections
    .filter(([, rows]) => rows.length > 0)
    .map(([title, rows]) => [title, ...drawRows(rows, width)].join('\n'))
    .join('\n\n')
}

/** Draws terms and their meanings in two columns; long texts are wrapped inside their column. */
export function drawRows(rows: readonly (readonly [term: string, text: string])[], width: number): string[] {
  const left = Math.max(...rows.map(([term]) => term.length)) + 4
  const room = Math.max(30, width - left)
  return rows.flatMap(([term, text]) =>
    wrapText(text, room).map((line, at) => `${(at === 0 ? `  ${term}` : '').padEnd(left)}${line}`),
  )
}

/** Files in the data directory, and elsewhere. */
const files = {
  'infer.yaml': 'the configuration: models, address, limits',
  'starter-declined': 'records that the small real model was declined; remove it to be asked again',
  'server.json': 'address and process of the running server',
  'https/certificate.pem': 'the self-signed certificate of --https, for clients to trust',
  'root-token': 'the token that commands use, readable by its owner only',
  'master-key': 'the key that tokens are derived from; keep it with the backups',
  'infer.db': 'organizations, tokens, jobs and the ledger',
  '~/.local/state/infer/chat-history': 'lines typed in chats, readable by its user only',
  '/etc/systemd/system/infer.service': 'the unit of a system service',
  '~/.config/systemd/user/infer.service': 'the unit of a user service',
} as const

/** Meanings of the exit codes. */
export const exits = {
  0: 'success',
  1: 'the request was refused, or there is no server',
  64: 'the command line is wrong',
  65: 'a configuration, a database or a file is invalid or damaged',
  70: 'something went wrong inside infer',
  74: 'a disk, a file or a socket of this machine failed',
  75: 'a job continues, but the command stopped waiting for it',
  130: 'ended with Ctrl-C',
} as const

type Variable = keyof typeof environmentVariables
type KnownFile = keyof typeof files
type ExitName = keyof typeof exits

/** The last sections of a command's help. */
interface CommandFacts {
  environment: readonly Variable[]
  files: readonly KnownFile[]
  exits: Partial<Record<ExitName, string>>
}

const remote = ['INFER_URL', 'INFER_TOKEN', 'INFER_DATA_DIR'] as const
const keys = ['INFER_MASTER_KEY', 'INFER_MASTER_KEY_FILE'] as const
const downloads = ['HF_HUB_OFFLINE', 'INFER_PYPI_INDEX', 'PIP_INDEX_URL', 'HTTPS_PROXY', 'NO_COLOR'] as const
const client: CommandFacts = {
  environment: [...remote, 'NO_COLOR'],
  files: ['server.json', 'root-token'],
  exits: { 0: exits[0], 1: exits[1], 64: exits[64], 70: exits[70], 130: exits[130] },
}
const generation: CommandFacts = {
  ...client,
  exits: { ...client.exits, 1: `${exits[1]}; a job failed or was cancelled`, 74: exits[74], 75: exits[75] },
}
const local: CommandFacts = {
  environment: ['INFER_URL', 'INFER_DATA_DIR', ...keys, 'NO_COLOR'],
  files: ['infer.db', 'master-key', 'root-token'],
  exits: { 0: exits[0], 1: 'the command was refused', 64: exits[64], 65: exits[65], 70: exits[70], 74: exits[74] },
}
/** Commands that work on the data directory, or on the server at INFER_URL. */
const administration: CommandFacts = {
  ...local,
  environment: [...remote, ...keys, 'NO_COLOR'],
  files: [...local.files, 'server.json'],
}
const model: CommandFacts = {
  environment: [...remote, 'HF_TOKEN', 'HF_ENDPOINT', 'HF_HOME', 'HF_HUB_CACHE', ...downloads],
  files: ['infer.yaml', 'server.json', 'root-token'],
  exits: { ...client.exits, 1: `${exits[1]}; for test: a model failed`, 65: exits[65], 74: exits[74] },
}
const nothing: CommandFacts = {
  environment: ['NO_COLOR'],
  files: [],
  exits: { 0: exits[0], 64: exits[64], 70: exits[70] },
}

const sharedBy = (facts: CommandFacts, ...names: string[]) => Object.fromEntries(names.map(name => [name, facts]))

/** By the name of the command; subcommands have the facts of their command. */
const commandFacts: Record<string, CommandFacts> = {
  ...sharedBy(client, 'approval', 'task', 'embed', 'rerank', 'console', 'status', 'logs', 'ps', 'stop', 'gpu'),
  ...sharedBy({ ...client, exits: { ...client.exits, 74: exits[74] } }, 'speak', 'transcribe'),
  ...sharedBy(generation, 'run', 'image', 'video', 'job', 'file'),
  ...sharedBy(administration, 'org', 'user', 'audit'),
  ...sharedBy(
    { ...client, files: ['infer.yaml', ...client.files], exits: { ...client.exits, 65: exits[65], 74: exits[74] } },
    'ls',
    'list',
    'show',
  ),
  ...sharedBy(local, 'backup', 'restore'),
  pool: {
    environment: ['INFER_DATA_DIR', 'NO_COLOR'],
    files: ['infer.yaml'],
    exits: { ...nothing.exits, 1: 'the machine cannot be used', 65: exits[65], 74: exits[74] },
  },
  ...sharedBy(nothing, 'completion', 'routes', 'licenses', 'kubernetes'),
  help: { ...nothing, environment: ['INFER_PAGER', 'PAGER', 'NO_COLOR'] },
  infer: {
    environment: [...remote, ...keys, 'INFER_CACHE_DIR', 'NO_COLOR'],
    files: ['infer.yaml', 'server.json', 'root-token', 'master-key', 'infer.db'],
    exits,
  },
  serve: {
    environment: [
      'INFER_DATA_DIR',
      ...keys,
      'INFER_BACKENDS_DIR',
      'INFER_CACHE_DIR',
      'HF_HOME',
      'HF_ENDPOINT',
      ...downloads,
    ],
    files: [
      'infer.yaml',
      'starter-declined',
      'server.json',
      'https/certificate.pem',
      'root-token',
      'master-key',
      'infer.db',
    ],
    exits: {
      ...local.exits,
      0: 'stopped by SIGTERM or Ctrl-C after running requests finished',
      130: 'stopped by a second Ctrl-C',
    },
  },
  batch: {
    ...client,
    exits: { ...client.exits, 1: `${exits[1]}; a batch did not complete`, 74: exits[74] },
  },
  workflow: {
    ...generation,
    files: ['infer.yaml', ...generation.files],
    exits: {
      ...generation.exits,
      1: `${exits[1]}; an execution failed or was cancelled`,
      65: 'a workflow or a file is invalid',
      75: 'an execution continues, but the command stopped waiting for it',
    },
  },
  execution: {
    ...generation,
    exits: {
      ...generation.exits,
      1: `${exits[1]}; an execution failed or was cancelled`,
      75: 'an execution continues, but the command stopped waiting for it',
    },
  },
  chat: {
    ...client,
    environment: [...remote, 'XDG_STATE_HOME', 'NO_COLOR'],
    files: [...client.files, '~/.local/state/infer/chat-history'],
  },
  model,
  pull: { ...model, exits: { ...model.exits, 1: 'the command was refused, or the download failed' } },
  rm: {
    environment: [...remote, 'NO_COLOR'],
    files: ['infer.yaml'],
    exits: { ...client.exits, 1: 'the command was refused', 65: exits[65], 74: exits[74] },
  },
  config: {
    environment: ['INFER_DATA_DIR', 'NO_COLOR'],
    files: ['infer.yaml'],
    exits: { ...nothing.exits, 65: 'the file is invalid', 74: 'the file cannot be read' },
  },
  token: {
    environment: [...remote, ...keys, 'NO_COLOR'],
    files: local.files,
    exits: { ...local.exits, 1: 'the command was refused; for scan: a valid secret was found' },
  },
  webhook: {
    environment: [...remote, ...keys, 'NO_COLOR'],
    files: ['infer.yaml', 'server.json', ...local.files],
    exits: {
      ...local.exits,
      1: 'the command was refused; for test: the URL did not accept the message',
      130: exits[130],
    },
  },
  usage: {
    environment: [...remote, 'NO_COLOR'],
    files: ['infer.db'],
    exits: local.exits,
  },
  doctor: {
    ...local,
    environment: ['INFER_BACKENDS_DIR', 'INFER_CACHE_DIR', ...local.environment],
    files: ['infer.yaml', ...local.files],
    exits: { ...local.exits, 1: 'something is broken' },
  },
  db: { ...local, exits: { ...local.exits, 65: 'the database is damaged' } },
  ledger: { ...local, exits: { ...local.exits, 65: 'a row of the ledger was changed, or the database is damaged' } },
  service: {
    environment: ['INFER_DATA_DIR', 'XDG_CONFIG_HOME'],
    files: ['/etc/systemd/system/infer.service', '~/.config/systemd/user/infer.service'],
    exits: { ...nothing.exits, 1: 'this machine has no systemd, or systemd refused', 74: exits[74] },
  },
  engine: {
    environment: [
      'INFER_ENGINE_KEY',
      'INFER_ENGINE_FOLDER',
      'INFER_BACKENDS_DIR',
      'INFER_CACHE_DIR',
      'INFER_PYPI_INDEX',
    ],
    files: [],
    exits: { ...nothing.exits, 65: exits[65], 74: exits[74] },
  },
}

/** The commands whose help names a guide. */
const commandsOfGuides = {
  'getting-started': ['run'],
  'chat-and-tools': ['chat'],
  embeddings: ['embed', 'rerank'],
  'images-and-video': ['image', 'video'],
  speech: ['speak', 'transcribe'],
  jobs: ['job', 'task'],
  batches: ['batch'],
  'files-and-batches': ['file'],
  workflows: ['workflow', 'execution'],
  'workflow-approvals': ['approval'],
  operating: ['serve', 'service', 'backup', 'restore', 'db'],
  'web-console': ['console'],
  monitoring: ['status'],
  troubleshooting: ['logs', 'doctor'],
  models: ['model'],
  engines: ['engine'],
  'sharing-a-card': ['gpu'],
  pools: ['pool'],
  organizations: ['org', 'user', 'audit', 'token'],
  webhooks: ['webhook'],
  'usage-and-spend': ['usage'],
  prices: ['ledger'],
}

/** The guide for a command and its subcommands. */
export const guideOf: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(commandsOfGuides).flatMap(([guide, names]) => names.map(name => [name, guide])),
)
