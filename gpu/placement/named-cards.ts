import { invalidValue } from '../../core/failure.ts'
import type { LeftDevice } from '../../core/models/fleet.ts'
import type { Device } from '../devices/device.ts'

type Card = Pick<Device, 'id' | 'kind' | 'name' | 'uuid'>

/** Whether a card has this number, id, UUID (or its beginning) or name, which several cards may have. */
export function isNamed({ id, name, uuid }: Pick<Card, 'id' | 'name' | 'uuid'>, by: number | string): boolean {
  if (typeof by === 'number') return id === `gpu${by}`
  const text = by.toLowerCase()
  return (
    text === id ||
    text === name.toLowerCase() ||
    (/^gpu-[0-9a-f-]{4,}/.test(text) && uuid?.toLowerCase().startsWith(text) === true)
  )
}

/**
 * Returns the ids of the cards to which `devices` of a model binds it, in their order on the machine; or why there is no
 * such card, as a sentence.
 */
export function namedCards(
  modelId: string,
  names: readonly (number | string)[],
  devices: readonly Card[],
  left: readonly LeftDevice[] = [],
): { ids: string[] } | { missing: string } {
  const cards = devices.filter(({ kind }) => kind !== 'cpu')
  const unknown = names.find(by => !cards.some(card => isNamed(card, by)))
  if (unknown === undefined)
    return { ids: cards.filter(card => names.some(by => isNamed(card, by))).map(({ id }) => id) }
  const others = left.find(card => isNamed({ ...card, uuid: null }, unknown))
  if (others) return { missing: `'${modelId}' is to use the GPU '${unknown}' (devices). ${others.reason}` }
  const known = cards.map(({ id, name }) => `${id} (${name})`).join(', ')
  const here = known === '' ? 'this server has found none' : `this server has ${known}`
  return { missing: `'${modelId}' is to use the GPU '${unknown}' (devices), and ${here}.` }
}

/**
 * Returns the ids of the devices that a person means by ids, numbers, UUIDs or names; `cpu` is the processor. Throws Failure
 * `invalid_value`.
 */
export function idsOfDevices(
  names: readonly string[],
  devices: readonly Pick<Device, 'id' | 'name' | 'uuid'>[],
  left: readonly LeftDevice[],
): string[] {
  const ids = new Set<string>()
  for (const name of names) {
    const by = /^\d+$/.test(name) ? Number(name) : name
    const found = devices.filter(device => isNamed(device, by))
    for (const { id } of found) ids.add(id)
    if (found.length > 0) continue
    const others = left.find(card => isNamed({ ...card, uuid: null }, by))
    const known = devices.map(({ id, name }) => `${id} (${name})`).join(', ')
    const text = others ? others.reason : `There is no device '${name}' here. This server has ${known}.`
    throw invalidValue(text, { param: 'devices' })
  }
  return [...ids]
}
