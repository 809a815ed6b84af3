/** How much one grammar may cost. A schema of a stranger must not keep the engine from its work. */
const most = {
  /** Characters and references in the rules: llama.cpp reads about a million a second, anew for every answer. */
  parts: 100_000,
  /** Steps of ours; a few hundred thousand a second at worst. */
  steps: 1_000_000,
}

/** Counts what a grammar costs and calls `refuse` with the reason once it is too much. */
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
