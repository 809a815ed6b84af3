import type { DeviceSetting } from '../../core/models/device-setting.ts'
import type { LeftDevice } from '../../core/models/fleet.ts'
import type { Device, Discovery } from '../devices/device.ts'
import { isNamed } from './named-cards.ts'

export interface CardRules {
  /** The environment of the server, of which CUDA_VISIBLE_DEVICES is read. */
  environment: Readonly<Record<string, string | undefined>>
  /** `devices` of infer.yaml; absent: every card. */
  devices?: readonly DeviceSetting[] | undefined
}

/**
 * Returns the cards that infer may use, with what it may use of each, in the order in which they are named; the others are
 * left to their owners. Pure.
 */
export function ownCards(found: Discovery, rules: CardRules): Discovery {
  const left: LeftDevice[] = []
  const leave = (cards: readonly Device[], why: string): void => {
    for (const { id, name } of cards) left.push({ id, name, reason: `${id} is left to others (${why}).` })
  }
  let own = found.devices
  const { CUDA_VISIBLE_DEVICES: visible } = rules.environment
  if (visible !== undefined) {
    const named = visibleCards(own, visible)
    leave(
      own.filter(card => !named.includes(card)),
      `CUDA_VISIBLE_DEVICES=${visible}`,
    )
    own = named
  }
  if (rules.devices) {
    const named = configuredCards(own, rules.devices)
    leave(
      own.filter(({ id }) => !named.some(card => card.id === id)),
      'devices in infer.yaml',
    )
    own = named
  }
  if (left.length === 0) return { ...found, devices: own }
  const reason = own.length > 0 ? found.reason : `No GPU is used: ${left.map(one => one.reason).join(' ')}`
  return { ...found, devices: own, left, reason }
}

/**
 * The cards that CUDA would show a program: numbers in the order of the bus, or beginnings of UUIDs; whatever follows
 * another entry, such as -1, does not count.
 */
function visibleCards(devices: readonly Device[], visible: string): Device[] {
  const cards = new Set(devices.filter(({ cudaId }) => cudaId === null))
  for (const entry of visible.split(',').map(text => text.trim())) {
    // A card that is missing now may come back, so what follows it still counts.
    if (!/^(\d+$|gpu-|mig-)/i.test(entry)) break
    for (const card of devices) if (isVisibleAs(card, entry)) cards.add(card)
  }
  return [...cards]
}

function isVisibleAs({ id, uuid, cudaId }: Device, entry: string): boolean {
  // A number names a whole card, and so all of its slices.
  if (/^\d+$/.test(entry)) return id === `gpu${entry}` || id.startsWith(`gpu${entry}.`)
  const text = entry.toLowerCase()
  if (!/^(gpu|mig)-/.test(text)) return false
  return [uuid, cudaId].some(known => known?.toLowerCase().startsWith(text) === true)
}

function configuredCards(devices: readonly Device[], settings: readonly DeviceSetting[]): Device[] {
  const own: Device[] = []
  for (const setting of settings) {
    const { device, memory } = typeof setting === 'object' ? setting : { device: setting, memory: undefined }
    for (const card of devices.filter(one => isNamed(one, device))) {
      if (own.some(({ id }) => id === card.id)) continue
      const budget = typeof memory === 'string' ? (card.totalBytes * Number.parseFloat(memory)) / 100 : memory
      own.push(budget === undefined ? card : { ...card, budget: Math.floor(budget) })
    }
  }
  return own
}

/** Why the cards that `devices` of infer.yaml names are not there, as sentences. */
export const unknownCards = (devices: readonly Device[], settings: readonly DeviceSetting[] = []): string[] =>
  settings
    .map(setting => (typeof setting === 'object' ? setting.device : setting))
    .filter(by => !devices.some(card => isNamed(card, by)))
    .map(by => `devices names the GPU '${by}', which this machine does not have. infer doctor lists its GPUs.`)
