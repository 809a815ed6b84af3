import type { openAffinity } from './affinity/affinity.ts'
import type { EngineConnections } from './requests/connections.ts'
import type { Resident } from './residency/model-state.ts'
import type { Residency } from './residency/residency.ts'

/**
 * Returns the function that takes a slot of the engine that has computed the beginning of a prompt, for a request that has one
 * of another engine. Undefined if it keeps that, as one does that must be alone on its engine.
 */
export const slotMover =
  (
    affinity: Pick<ReturnType<typeof openAffinity>, 'choose'>,
    residency: () => Pick<Residency, 'takeOf'>,
    connections: (engineId: string) => EngineConnections,
  ) =>
  (from: Resident, prompt: string | Uint8Array) => {
    const near = from.alone ? undefined : affinity.choose(from.serves.residents, prompt, from.engineId)
    if (!near) return undefined
    const other = from.serves.residents.find(({ engineId }) => engineId === near.engineId && engineId !== from.engineId)
    const resident = other && residency().takeOf(other) ? other : undefined
    near.given((resident ?? from).engineId)
    return resident && { resident, connections: connections(resident.engineId) }
  }
