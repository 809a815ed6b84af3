/** Limits of the cost of one grammar, so that no request can block the engine with its schema. */
const most = {
  /** Characters and references in the rules. llama.cpp parses about a million a second, again for every answer. */
  parts: 100_000,
  /** Steps of the conversion; a few hundred thousand per second at worst. */
  steps: 1_000_000,
}

/** Counts the cost of a grammar and calls `refuse` with the reason when it exceeds a limit. */
export function openBudget(refuse: (reason: string) => never) {
  let parts = 0
  let steps = 0
  return {
    parts(amount: number): void {
      parts += amount
      if (parts > most.parts) refuse(`its grammar would have more than ${most.parts} parts`)
    },
    steps(amount: number): void {
      steps += amount
      if (steps > most.steps) refuse('its alternatives multiply')
    },
  }
}

export type Budget = ReturnType<typeof openBudget>
