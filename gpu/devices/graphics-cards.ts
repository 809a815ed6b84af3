import { join } from 'node:path'
import { optionalNames, optionalText } from '../../core/optional-file.ts'
import { queryCards, type RunOptions } from './nvidia-smi.ts'

/** A card on the bus of the machine, whether or not it has a driver. */
export interface BusCard {
  maker: 'nvidia' | 'amd' | 'intel'
  /** Part of an Intel processor: it shares the main memory. */
  integrated: boolean
}

/** What decides which backend suits this machine. */
export interface GraphicsCards {
  /** Cards that the driver of NVIDIA reports; `capability` such as 8.6, null if it is unknown. */
  nvidia: readonly { name: string; capability: number | null }[]
  /** The version of the driver of NVIDIA, such as 580.95; null without a driver. */
  driver: number | null
  /** Why the driver reports no card, as a sentence; null where it does, or where there is no driver. */
  fault: string | null
  bus: readonly BusCard[]
  /** Whether a driver offers a card of any maker for computing, in `/dev/dri`. */
  renders: boolean
}

const makers: Readonly<Record<string, BusCard['maker']>> = { '0x10de': 'nvidia', '0x1002': 'amd', '0x8086': 'intel' }

/** Reads the cards of this machine from nvidia-smi and the kernel. Never throws. */
export async function findGraphicsCards(options: RunOptions & { root?: string } = {}): Promise<GraphicsCards> {
  const { root = '/' } = options
  const { cards, problem } = await queryCards(options)
  const bus = optionalNames(join(root, 'sys/bus/pci/devices')).flatMap((address): BusCard[] => {
    const about = (name: string) => optionalText(join(root, 'sys/bus/pci/devices', address, name))?.trim() ?? ''
    const maker = makers[about('vendor')]
    // Display controllers: VGA, 3D and others.
    if (maker === undefined || !about('class').startsWith('0x03')) return []
    return [{ maker, integrated: maker === 'intel' && address === '0000:00:02.0' }]
  })
  return {
    nvidia: cards.map(({ name, computeCapability }) => ({
      name,
      capability: computeCapability === null ? null : Number(computeCapability),
    })),
    driver: Number.parseFloat(cards.find(card => card.driver !== null)?.driver ?? '') || null,
    fault: problem?.broken ? problem.reason : null,
    bus,
    renders: optionalNames(join(root, 'dev/dri')).some(name => name.startsWith('renderD')),
  }
}
