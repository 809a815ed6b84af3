/**
 * Lets everyone who wants a step of the model take it together. `step` runs the work with all other works that came
 * in until the round began; the next round begins when the last of them is done.
 *
 * llama.cpp is given one batch a round this way. Left to themselves, requests that began at different moments stay
 * in different batches (5 of 16 in one, measured), and a context that is never without a waiting batch never lets a
 * new request at its memory: it waited until another's answer had ended.
 */
export function openRounds() {
  let waiting: (() => Promise<void>)[] = []
  let running = false

  const run = async () => {
    while (waiting.length > 0) {
      const round = waiting
      waiting = []
      await Promise.all(round.map(work => work()))
      // Those who just got their token come back for the next one before this resumes.
      await new Promise(setImmediate)
    }
    running = false
  }

  return function step<T>(work: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      waiting.push(() => work().then(resolve, reject))
      if (running) return
      running = true
      setImmediate(() => void run())
    })
  }
}

export type Step = ReturnType<typeof openRounds>
