/** Texts of inputs, wherever they are shown. */
export const resultText = {
  wholeText: (characters: string) => `Show all ${characters} characters`,
  noInputs: 'The inputs are not kept for this job.',
} as const
