/** The most lines of an input file. */
export const maxLines = 50_000
/** The largest input file, bytes. */
export const maxInputBytes = 200 << 20
/** The longest `custom_id`, characters. */
export const maxCustomId = 512
/** The most faults of an input file that are reported. */
export const maxFaults = 100
/** How many attempts a line has: the first, and three retries. */
export const maxAttempts = 4
/** The most lines of an organization that are jobs at a time. */
const maxOpen = 128

/**
 * Returns how many lines of one batch may be jobs at a time. All batches of an organization share its part, and leave it
 * half of its limit of pending jobs (0: none) for other work.
 */
export function batchWindow(batches: number, pendingJobs: number): number {
  const open = pendingJobs > 0 ? Math.min(maxOpen, Math.floor(pendingJobs / 2)) : maxOpen
  return Math.max(1, Math.floor(open / Math.max(1, batches)))
}
