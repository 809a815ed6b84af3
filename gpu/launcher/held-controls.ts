import { isDeepStrictEqual } from 'node:util'
import { type Control, type ControlOptions, openControl } from './control.ts'
import { heard, isRefusal, isUnreachable, pauseMs, type Reach, refused } from './reach.ts'

/** The wrapper of a launch that runs. */
export interface ReachedWrapper extends Pick<ControlOptions, 'address' | 'tls'> {
  launchId: string
  node: string | null
}

interface Held {
  wrapper: ReachedWrapper
  /** Undefined between two attempts. */
  control: Control | undefined
  reach: Reach
  /** Attempts that have failed since it answered last. */
  failures: number
  isUnreachable: boolean
  timer: NodeJS.Timeout | undefined
}

/**
 * Keeps a connection to the wrapper of every engine that runs: it tells the wrapper that a server is there. A connection that
 * breaks is opened again, and so it becomes known which engines cannot be reached (`reach.ts`). `closed` is called when a
 * connection breaks, and `changed` when an engine cannot be reached any more, or can be again.
 */
export function holdControls(options: {
  /** Milliseconds between two words to each wrapper. */
  beatMs: number
  closed: (launchId: string, wasReached: boolean) => void
  changed: (launchId: string, isReached: boolean) => void
  now?: () => number
}) {
  const { beatMs, closed, changed, now = () => performance.now() } = options
  const all = new Map<string, Held>()
  let isClosed = false

  function connect(held: Held): void {
    const { launchId, address, tls } = held.wrapper
    const isHeld = () => all.get(launchId) === held
    held.control = openControl({
      address,
      tls,
      beatMs,
      heard() {
        if (!isHeld()) return
        held.reach = heard(held.reach, now())
        held.failures = 0
        judge(all.values())
      },
      closed(wasReached, code) {
        if (!isHeld()) return
        held.control = undefined
        const isFirst = held.failures === 0
        held.failures++
        if (!wasReached && isRefusal(code)) held.reach = refused(held.reach, now())
        // Whether the others answer shows whether this server is cut off.
        if (held.reach.refusals === 1) for (const other of all.values()) if (other !== held) other.control?.check()
        held.timer = setTimeout(connect, pauseMs(held.failures), held)
        held.timer.unref()
        judge([held])
        if (isFirst) closed(launchId, wasReached)
      },
    })
  }

  /** A refusal changes only the verdict on whom it came from, an answer that on all. */
  function judge(those: Iterable<Held>): void {
    const reaches = Array.from(all.values(), ({ reach }) => reach)
    for (const held of those) {
      const { reach } = held
      if (held.isUnreachable ? reach.refusals > 0 : reach.refusals === 0) continue
      const verdict = reach.refusals > 0 && isUnreachable(reach, reaches, now())
      if (verdict === held.isUnreachable) continue
      held.isUnreachable = verdict
      changed(held.wrapper.launchId, !verdict)
    }
  }

  function drop(launchId: string): void {
    const held = all.get(launchId)
    all.delete(launchId)
    clearTimeout(held?.timer)
    held?.control?.close()
  }

  return {
    /** Keeps a connection to this wrapper until `drop`. */
    keep(wrapper: ReachedWrapper): void {
      if (isClosed) return
      const before = all.get(wrapper.launchId)
      if (before && isDeepStrictEqual(before.wrapper.address, wrapper.address)) {
        // A launch of several nodes is placed only when its last part is.
        before.reach = { ...before.reach, node: wrapper.node }
        return
      }
      drop(wrapper.launchId)
      const reach = { node: wrapper.node, heardAt: Number.NEGATIVE_INFINITY, refusals: 0, refusedSince: 0 }
      const held = { wrapper, control: undefined, reach, failures: 0, isUnreachable: false, timer: undefined }
      all.set(wrapper.launchId, held)
      connect(held)
    },
    drop,
    has: (launchId: string): boolean => all.get(launchId)?.control !== undefined,
    /** The open connection; undefined without one. */
    find: (launchId: string): Control | undefined => all.get(launchId)?.control,
    /** A request could not connect: looks at once whether the wrapper answers. */
    check: (launchId: string): void => all.get(launchId)?.control?.check(),
    isUnreachable: (launchId: string): boolean => all.get(launchId)?.isUnreachable ?? false,
    close(): void {
      isClosed = true
      for (const launchId of all.keys()) drop(launchId)
    },
  }
}
