/** Texts of results and inputs, wherever they are shown. */
export const resultText = {
  reasoning: 'Reasoning',
  data: 'Result as JSON',
  download: 'Download',
  image: (name: string) => `Image ${name}`,
  video: (name: string) => `Video ${name}`,
  audio: (name: string) => `Audio ${name}`,
  document: (index: number) => `Document ${index + 1}`,
  vectors: (count: number, dimensions: number) =>
    `${count === 1 ? 'One vector' : `${count} vectors`}${dimensions > 0 ? ` of ${dimensions} numbers` : ''}`,
  noInputs: 'The inputs are not kept for this job.',
} as const
