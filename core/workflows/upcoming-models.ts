/** How many executions are known at most; of further ones the fleet learns nothing ahead. */
const maxExecutions = 10_000
/** Until the fleet is told, milliseconds: jobs that are ready now have entered the queue by then, and its demand goes first. */
const afterMs = 100

/**
 * Counts how many running executions need each model next. `changed` of the fleet is called a moment after other models are
 * needed than before, with a map that is kept current.
 */
export function openUpcomingModels(changed: (models: ReadonlyMap<string, number>) => void) {
  const executions = new Map<string, readonly string[]>()
  const counts = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined

  function add(models: readonly string[], by: 1 | -1): boolean {
    let other = false
    for (const id of models) {
      const before = counts.get(id) ?? 0
      if (before + by === 0) counts.delete(id)
      else counts.set(id, before + by)
      other ||= before === 0 || before + by === 0
    }
    return other
  }

  return {
    /** The nodes that come next in an execution have these models now; none once it has ended. */
    changed(id: string, models: readonly string[]): void {
      const before = executions.get(id) ?? []
      if (models.length === 0) executions.delete(id)
      else if (executions.has(id) || executions.size < maxExecutions) executions.set(id, models)
      else return
      const gone = add(before, -1)
      if (add(models, 1) || gone)
        timer ??= setTimeout(() => {
          timer = undefined
          changed(counts)
        }, afterMs).unref()
    },
    close: (): void => clearTimeout(timer),
  }
}
