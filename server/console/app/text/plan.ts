import { named } from './named.ts'

/** Texts of the plan of a model: what happens if a request comes now. */
export const planText = {
  about: 'What happens if a request for this model comes now. Nothing is started.',
  statuses: {
    ready: 'Served at once',
    loading: 'Being loaded',
    load: 'Would be loaded',
    wait: 'Would wait',
    refused: 'Would be refused',
  },
  expected: (time: string) => `Expected in ${time}.`,
  evict: 'Unloaded for it',
  evictColumns: { model: 'Model', memory: 'Memory', reload: 'Loading it again', why: 'Why' },
  waits: 'What it waits for',
  devices: 'Devices',
  deviceColumns: { device: 'Device', free: 'Free', needed: 'Needed', engines: 'Engines there' },
  otherModel: 'another model',
  evicted: (model: string) => `${model} (would be unloaded)`,
  kept: (model: string) => `${model} (kept loaded)`,
  figures: 'Figures',
  facts: { ...named('memory', 'loading', 'run', 'slots', 'threads', 'adapters'), bound: 'Loads out of order, at most' },
  sources: {
    configured: 'configured',
    estimated: 'estimated',
    measured: 'measured',
    unknown: 'not known',
    other_models: 'from other models',
    size: 'from its size',
  },
  from: (value: string, source: string) => `${value} (${source})`,
  placement: 'Placement',
  fallbacks: 'Fallbacks',
  more: 'What the configuration gives it',
} as const
