import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { checkDatabase } from '../../../core/store/sqlite/check.ts'
import { startEngine } from '../../_engine.ts'
import { killsOf } from '../../_full.ts'
import { openBench } from '../../bench/server.ts'

const kills = killsOf(2, 20)
const count = 100 * (kills + 1)

interface Execution {
  id: string
  status: string
  nodes: { status: string; items: { total: number; completed: number; failed: number; running: number } | null }[]
  outputs: { each: { values: Record<string, string[]> } } | null
}

test('after kill -9 a node goes on with the items that are left, and has the result of each exactly once', {
  timeout: 30_000 + kills * 20_000,
}, async () => {
  await using engine = await startEngine()
  const bench = openBench()
  try {
    const tasks = ['std/completion']
    const model = { id: 'fake', engine: 'remote', url: `${engine.url}/v1`, concurrency: 2, tasks }
    const config = { models: [model], limits: { min_free_disk: 0, ballast: 0 } }
    let server = await bench.serve(config)
    const send = async <Answer>(path: string, body?: object): Promise<Answer> => {
      const authorization = `Bearer ${server.rootToken}`
      const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, {
        headers: { authorization, 'content-type': 'application/json' },
        ...(body ? { method: 'POST', body: JSON.stringify(body) } : {}),
      })
      return (await answer.json()) as Answer
    }
    const each = {
      model_id: 'fake',
      task: 'std/completion',
      for_each: '${input.texts}',
      max_parallel: 10,
      inputs: { prompt: '${index} ${item}', echo: true, max_tokens: 1 },
      outputs: ['[*].choices[0].text'],
    }
    const texts = Array.from({ length: count }, (_, at) => `text ${at}`)
    const started = await send<{ execution: Execution }>('/api/workflows/run', {
      dag: { nodes: { each } },
      input_params: { texts },
    })
    let { execution } = started
    for (let killed = 0; execution.status !== 'completed'; await delay(10)) {
      ;({ execution } = await send<{ execution: Execution }>(`/api/workflow-executions/${execution.id}`))
      expect(['pending', 'running', 'completed']).toContain(execution.status)
      const ended = execution.nodes[0]!.items?.completed ?? 0
      if (killed === kills || ended <= (count * killed) / (kills + 1)) continue
      killed++
      const exited = bench.exit(server.pid)
      process.kill(server.pid, 'SIGKILL')
      await exited
      server = await bench.serve(config)
    }
    expect(execution.nodes[0]!.items).toEqual({ total: count, completed: count, failed: 0, running: 0 })
    const [found] = Object.values(execution.outputs!.each.values)
    expect(found!.map(text => /^\d+ text \d+/.exec(text)![0])).toEqual(texts.map((text, at) => `${at} ${text}`))
    // The bill has each job once.
    expect((await checkDatabase(bench.dataDir)).findings).toEqual([])
  } finally {
    bench.close()
  }
})
