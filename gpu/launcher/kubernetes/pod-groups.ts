import { launchStateOf } from './pod-launch-state.ts'
import { partSetName, podName } from './pod-manifest.ts'
import type { ContainerState, GroupState, PodState } from './pod-state.ts'

/** The pods of a launch that spans nodes. */
export interface PodGroup {
  launchId: string
  /** By their names. */
  parts: Map<string, PodState>
  fault: GroupState['fault']
}

export const newGroup = (launchId: string): PodGroup => ({ launchId, parts: new Map(), fault: null })

/**
 * Takes over what was seen of a part. The first one that ends says how the launch has ended; a deletion does not if the launch
 * `isEnding`.
 */
export function applyPart(group: PodGroup, part: PodState, isEnding: boolean): void {
  const hasEnded = part.engine.state === 'ended' || !isEnding
  if (hasEnded) group.fault ??= faultOf(part)
  if (part.isRemoved) group.parts.delete(part.name)
  else group.parts.set(part.name, part)
}

function faultOf(part: PodState): GroupState['fault'] {
  const { rank, node, wrapper, engine } = part
  const { state, status, reason } = launchStateOf(part)
  if (state === 'gone') {
    const hasWords = status === null || reason === null || !/^It (has exited|was ended)/.test(reason)
    return {
      status,
      reason: rank === 0 || hasWords ? reason : `Its part on the node '${node}' has ended with ${status}.`,
    }
  }
  if (part.deletingIn !== null) return { status: null, reason: reason ?? `Its pod on the node '${node}' was deleted.` }
  return rank === 0 && wrapper.state === 'ended' && engine.state !== 'ended' ? { status: null, reason } : null
}

/**
 * The pods of a launch as if they were one, under the name of their LeaderWorkerSet: it runs when all of them do, and is
 * reached by the first. `size`: how many there must be. `isDeleted`: their LeaderWorkerSet is. Pure.
 */
export function joinedPod(
  { launchId, parts, fault }: PodGroup,
  { uid, size, isDeleted }: { uid: string; size: number; isDeleted: boolean },
): PodState {
  const all = [...parts.values()].toSorted((a, b) => a.rank! - b.rank!)
  const first = all.find(({ rank }) => rank === 0)
  const unplaced = all.find(({ node }) => node === null)
  const waiting = all.find(({ engine }) => engine.state === 'waiting')
  const isWhole = all.length >= size
  const shown = unplaced ?? waiting ?? first
  const nodes = all.flatMap(({ node }) => node ?? [])
  const deleting = all.flatMap(({ deletingIn }) => deletingIn ?? [])
  return {
    name: podName(launchId),
    uid,
    launchId,
    phase: isWhole && !waiting ? 'Running' : 'Pending',
    node: isWhole && !unplaced ? nodes.join(', ') : null,
    address: first?.address ?? null,
    deletingIn: deleting.length > 0 ? Math.max(...deleting) : null,
    engine: isWhole && !waiting ? first!.engine : (waiting?.engine ?? absent),
    wrapper: first?.wrapper ?? absent,
    reason: shown?.reason ?? '',
    message: shown?.message ?? '',
    isRemoved: all.length === 0 && isDeleted,
    rank: null,
    group: {
      fault,
      begun: all.filter(({ engine }) => engine.state !== 'waiting').map(({ rank }) => rank!),
      waiting: waiting && waiting.node !== null ? waiting.uid : null,
      incomplete: isWhole ? null : partSetName(launchId, first === undefined ? 0 : 1),
    },
  }
}

const absent: ContainerState = { state: 'waiting', reason: '', message: '', image: '', exitCode: null }
