import type { Api } from '../client/client.ts'
import { printable } from '../terminal/styled-line.ts'

type Engine = Pick<Api['EngineStatus'], 'model_id' | 'placement'>

/** Returns a sentence for the engines that use no GPU, or not for all layers, although the machine has GPUs. */
export function placementNotes(engines: readonly Engine[]): { text: string; isAdvice: boolean }[] {
  const models = new Map<string, Set<string>>()
  for (const { model_id, placement } of engines)
    if (/[:;]/.test(placement.detail))
      models.set(placement.detail, (models.get(placement.detail) ?? new Set()).add(model_id))
  const advised = new Set(engines.flatMap(({ placement }) => (placement.advice === null ? [] : [placement.detail])))
  return [...models].map(([detail, ids]) => ({
    text: printable(`${[...ids].join(', ')}: ${detail}`),
    isAdvice: advised.has(detail),
  }))
}

/** `37/37`; `-` for an engine whose layers infer does not choose. */
export const layersText = ({ placement: { gpu_layers, layers } }: Pick<Engine, 'placement'>): string =>
  layers === null ? '-' : `${gpu_layers}/${layers}`

/** Returns the names of the GPUs on which these engines are, a sentence for each. */
export const deviceNotes = (
  engines: readonly Pick<Api['EngineStatus'], 'devices'>[],
  devices: readonly Pick<Api['DeviceStatus'], 'id' | 'name' | 'kind'>[],
): string[] =>
  devices
    .filter(({ id, kind }) => kind !== 'cpu' && engines.some(engine => engine.devices.includes(id)))
    .map(({ id, name }) => printable(`${id} is ${name}.`))
