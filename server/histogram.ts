import { Histogram, type LabelValues } from 'prom-client'

/** How often something took how long, in one place: what is observed on every request costs three additions. */
export class Distribution {
  readonly counts: number[]
  sum = 0
  #bounds: readonly number[]

  /** `bounds` in seconds, ascending; what is above the last is counted last. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0)
  }

  observe(seconds: number): void {
    let at = 0
    while (at < this.#bounds.length && seconds > this.#bounds[at]!) at++
    this.counts[at]!++
    this.sum += seconds
  }
}

/**
 * A histogram that is put together when somebody scrapes. prom-client's own looks its labels up with every
 * observation, by a text that it makes of them: with two a request that was 3 % of the main thread.
 */
export class CountedHistogram<Label extends string> extends Histogram<Label> {
  #facts: { name: string; help: string; bounds: readonly number[] }
  #children: { labels: LabelValues<Label>; distribution: Distribution }[] = []

  constructor(facts: { name: string; help: string; buckets: readonly number[]; labelNames: Label[] }) {
    super({ ...facts, buckets: [...facts.buckets], registers: [] })
    this.#facts = { name: facts.name, help: facts.help, bounds: facts.buckets }
  }

  /** What is counted under these labels from now on; keep it, each call makes another one. */
  under(labels: LabelValues<Label>): Distribution {
    const distribution = new Distribution(this.#facts.bounds)
    this.#children.push({ labels, distribution })
    return distribution
  }

  override get(): ReturnType<Histogram<Label>['get']> {
    const { name, help, bounds } = this.#facts
    const values = this.#children.flatMap(({ labels, distribution: { counts, sum } }) => {
      let total = 0
      const buckets = counts.map((count, at) => {
        total += count
        const atMost = { le: bounds[at] ?? '+Inf' }
        return { labels: { ...atMost, ...labels }, value: total, metricName: `${name}_bucket` }
      })
      const whole = { labels, value: total, metricName: `${name}_count` }
      return [...buckets, { labels, value: sum, metricName: `${name}_sum` }, whole]
    })
    const metric = { name, help, type: 'histogram', values, aggregator: 'sum' }
    // Its types name the kind by an enum that is not there when it runs.
    return Promise.resolve(metric) as unknown as ReturnType<Histogram<Label>['get']>
  }

  /** The registry asks this way when it writes its text. */
  getForPromString(): ReturnType<Histogram<Label>['get']> {
    return this.get()
  }
}
