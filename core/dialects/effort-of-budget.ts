/** Returns the reasoning effort for a number of tokens that the model may reason; undefined without a number. */
export function effortOfBudget(tokens: number | null | undefined): 'low' | 'medium' | 'high' | undefined {
  if (tokens === undefined || tokens === null) return undefined
  return tokens < 4096 ? 'low' : tokens < 16_384 ? 'medium' : 'high'
}
