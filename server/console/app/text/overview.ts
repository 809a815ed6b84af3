import { named } from './named.ts'

export const overviewText = {
  ...named('devices', 'memory', 'processor'),
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
  engineSlots: (busy: number, slots: number) => `${busy} of ${slots} ${slots === 1 ? 'slot' : 'slots'} busy`,
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
  noFailures: 'No job or request has failed',
  noFailuresNext: 'Failed work of the last days is listed here with the reason.',
  allFailures: 'Show all',
  failureColumns: named('when', 'work', 'model', 'why'),
  ownOnly:
    'Devices and engines are shown to tokens of the organization that owns the machine, with the scope admin:read.',
  fault: (message: string) => `The configuration file is not in force. ${message}`,
  restart: (settings: string) => `Changed settings take effect at the next start of the server: ${settings}.`,
} as const
