/** A test request of a task whose answer can be checked for every working model. It is sent to the path of the task. */
export interface TaskTest {
  /** Whether to stream, in order to measure the time to the first token and the rate. */
  stream: boolean
  body: (model: string) => object
  /** Returns why the answer is wrong, as a sentence; undefined when it is correct. Takes the body, or a `Streamed`. */
  fault: (answer: unknown) => string | undefined
}

/** The combined events of a stream: the text and the token usage. */
export interface Streamed {
  text: string
  finished: boolean
  completionTokens: number | undefined
}

/** A question, and texts of which only the first answers it. */
export const testQuery = 'What is the capital of France?'
export const testTexts = [
  'Paris is the capital of France.',
  'A cat sat on the mat.',
  'Bread is made of flour and water.',
] as const

/** Inputs of samples. */
export const sampleText = 'Say hello in one short sentence.'
export const sampleTexts = ['The cat sleeps on the mat.', 'Stocks fell sharply today.'] as const
export const sampleImage = 'A red ball on green grass.'

/** Returns the test of a task that generates text. */
export const testOfStream = (request: object): TaskTest => ({
  stream: true,
  body: model => ({ model, ...request, temperature: 0, stream: true, stream_options: { include_usage: true } }),
  fault(answer) {
    const { text, finished, completionTokens } = answer as Streamed
    if (text.trim() === '') return 'The answer is empty.'
    if (!finished) return 'The answer has no finish_reason.'
    if (completionTokens === undefined) return 'The answer has no usage.'
    return completionTokens > 0 ? undefined : 'The usage reports no completion tokens.'
  },
})
