/** Texts of inputs, wherever they are shown. */
export const resultText = {
  noInputs: 'The inputs are not kept for this job.',
} as const
