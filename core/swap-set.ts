/** What can be in one SwapSet at a time; the set writes where. */
export interface SwapSetMember {
  /** Its place in the set, -1 while it is in none. */
  setIndex: number
}

/**
 * A set of what comes and goes with every request. A `Set` would do, at a price that is paid elsewhere: V8 replaces its
 * table after so many deletions, and each table that is given up points at the next. Once one of them is in the old
 * generation, all that was ever in flight at such a moment is kept and copied until the next full collection: at 64
 * requests in flight that made every minor collection three times as long.
 */
export class SwapSet<T extends SwapSetMember> implements Iterable<T> {
  #members: T[] = []

  get size(): number {
    return this.#members.length
  }

  /** Adds one that is in no set. */
  add(member: T): void {
    member.setIndex = this.#members.push(member) - 1
  }

  /** Takes it out; the last one takes its place. Does nothing for one that is not there. */
  delete(member: T): void {
    const { setIndex } = member
    if (this.#members[setIndex] !== member) return
    member.setIndex = -1
    const last = this.#members.pop()!
    if (last === member) return
    last.setIndex = setIndex
    this.#members[setIndex] = last
  }

  /** Those that are there now, in no order, whatever comes and goes meanwhile. */
  [Symbol.iterator](): ArrayIterator<T> {
    return this.#members.slice().values()
  }
}
