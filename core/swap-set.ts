/** A member of at most one SwapSet at a time. */
export interface SwapSetMember {
  /** Index in the set, -1 while it is in none. The set writes it. */
  setIndex: number
}

/**
 * A set for members that are added and removed with every request. A `Set` would make garbage collection slow: V8
 * replaces its table after a number of deletions, and each old table points to the next one. Once an old table is in the
 * old generation, it keeps all members of the tables after it alive until the next full collection. With 64 requests in
 * flight every minor collection took three times as long.
 */
export class SwapSet<T extends SwapSetMember> implements Iterable<T> {
  #members: T[] = []

  get size(): number {
    return this.#members.length
  }

  /** Adds a member that is in no set. */
  add(member: T): void {
    member.setIndex = this.#members.push(member) - 1
  }

  /** Removes a member and moves the last one to its index. Does nothing for an object that is not in the set. */
  delete(member: T): void {
    const { setIndex } = member
    if (this.#members[setIndex] !== member) return
    member.setIndex = -1
    const last = this.#members.pop()!
    if (last === member) return
    last.setIndex = setIndex
    this.#members[setIndex] = last
  }

  /** The first member that matches, in no particular order: reads all of them where none does. */
  find(matches: (member: T) => boolean): T | undefined {
    return this.#members.find(matches)
  }

  /** Iterates over a copy of the members, in no particular order: the set may change meanwhile. */
  [Symbol.iterator](): ArrayIterator<T> {
    return this.#members.slice().values()
  }
}
