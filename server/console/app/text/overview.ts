import { named } from './named.ts'

export const overviewText = {
  ...named('devices', 'memory', 'processor', 'pause', 'resume'),
  work: (running: number, waiting: number) =>
    running + waiting === 0 ? 'Nothing runs now' : `${running} running, ${waiting} waiting`,
  memoryParts: { own: 'in use by engines', reserved: 'reserved for engines', foreign: 'in use by other programs' },
  memoryValue: (taken: string, total: string, isMeasured: boolean) =>
    `${taken} of ${total} ${isMeasured ? 'in use or reserved' : 'reserved'}`,
  utilization: (percent: number) => `${percent} % busy`,
  temperature: (celsius: number) => `${celsius} °C`,
  power: (watts: number, limit: number | null) =>
    limit === null ? `${watts} W` : `${watts} of ${Math.round(limit)} W`,
  engines: (device: string) => `Engines on ${device}`,
  noEngines: 'No engine is loaded here.',
  layers: (onGpu: number, total: number) => `${onGpu} of ${total} layers on GPUs`,
  savedConversations: (count: number, size: string) =>
    `${count} ${count === 1 ? 'conversation' : 'conversations'} saved (${size})`,
  engineSlots: (busy: number, slots: number) => `${busy} of ${slots} ${slots === 1 ? 'slot' : 'slots'} busy`,
  gpuSetup: {
    title: 'Set up the GPUs',
    unused: (why: string) => `The built-in engine does not use the GPUs: it needs ${why}.`,
    blocked: (why: string, advice: string | null) =>
      `The built-in engine does not use the GPUs. ${why}.${advice === null ? '' : ` ${advice}`}`,
    offer: (size: string) => `Set up (${size})`,
    again: 'Continue',
    running: 'The GPUs are being set up',
    starting: 'Reading what is missing…',
    progress: (bytes: string, total: string) => `${bytes} of ${total}`,
    trying: 'Unpacking and computing with it. The first time the driver may compile code for the GPU, for minutes.',
    completed: (detail: string) => `The GPUs are set up: the backend ${detail}. Models move to them by themselves.`,
    failed: (detail: string) => `Setting up the GPUs failed. ${detail}`,
    stopped: 'The setup was stopped. What has arrived is kept.',
    packages: 'Packages',
    columns: named('package', 'version', 'size', 'license'),
    source: (size: string, source: string, folder: string) => `${size} from ${source} into ${folder}`,
    accept: 'Download and accept the licenses',
  },
  pauseFor: (device: string) => `How long ${device} is paused`,
  pauseLengths: { 1800: '30 minutes', 7200: '2 hours', 28800: '8 hours', 0: 'Until resumed' },
  pausing: (device: string) => `${device} is paused. Its engines are unloaded when their requests have ended.`,
  isPaused: (device: string) => `${device} is paused, and no engine is on it.`,
  isResumed: (device: string) => `${device} is used again.`,
  activity: 'Last 60 minutes',
  requests: 'Requests per second',
  ended: 'ended',
  failed: 'failed',
  tokens: 'Tokens per second',
  generated: 'generated',
  prompt: 'prompt',
  chartSummary: (name: string, now: string, most: string) => `${name}: ${now} now, ${most} at most in the last hour`,
  models: 'Models and queues',
  columns: {
    ...named('model', 'state', 'slots', 'queue', 'firstToken', 'actions'),
    speed: 'Tokens/s',
  },
  waiting: (count: number, interactive: number) =>
    `${count} ${count === 1 ? 'waits' : 'wait'}${interactive > 0 && interactive < count ? `, ${interactive} with a caller` : ''}`,
  waited: (mean: string, strict: string) => `waited ${mean} on average (in strict order ${strict})`,
  nothingWaits: 'empty',
  noModels: 'No model is configured',
  noModelsNext: 'Models that are added appear here with their state and their queue.',
  addModel: 'Go to Models',
  failures: 'Last failures',
  engineFailures: (count: number) =>
    `its engine failed ${count === 1 ? 'once' : `${count} times`} since the server started`,
  engineLog: (model: string) => `Log of ${model}`,
  noFailures: 'No job or request has failed',
  noFailuresNext: 'Failed work of the last days is listed here with the reason.',
  allFailures: 'Show all',
  failureColumns: named('when', 'work', 'model', 'why'),
  ownOnly:
    'Devices and engines are shown to tokens of the organization that owns the machine, with the scope admin:read.',
} as const
