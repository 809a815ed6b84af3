/** A request that the playground has sent, or would send. */
export interface SampleRequest {
  /** Of this server: `http://127.0.0.1:8787`. */
  origin: string
  task: string
  /** Where it is answered at once; absent for a job. */
  path?: string | undefined
  model: string
  /** The inputs of the task, without the model. */
  inputs: Readonly<Record<string, unknown>>
  /** Makes one video for each aspect ratio, by the path of the model below `/slug`. */
  formats?: { slug: string; ratios: readonly string[] } | undefined
}

/** Returns the route that answers the task at once; undefined where the sample creates a job. */
export const samplePath = ({ category, path }: { category: string; path?: string | null }): string | undefined =>
  category === 'text' ? (path ?? undefined) : undefined

export const languages = ['curl', 'python', 'javascript', 'workflow'] as const
export type Language = (typeof languages)[number]

/** Returns the request as code that runs as it is, with the token in the variable INFER_TOKEN. */
export function sampleOf(language: Language, request: SampleRequest): string {
  const { formats, inputs, path } = request
  if (language === 'workflow') return workflowOf(request)
  if (formats) {
    const { aspect_ratio: _, ...shared } = inputs
    const direct = { path: `/slug/${formats.slug}`, body: { ...shared, aspect_ratios: formats.ratios } }
    return directSamples[language](request, direct)
  }
  if (path === undefined) return jobSamples[language](request, jobBody(request))
  return directSamples[language](request, { path, body: { model: request.model, ...request.inputs } })
}

const jobBody = ({ task, model, inputs }: SampleRequest) => ({ task, model_id: model, inputs })

const indented = (value: unknown, by: number): string =>
  JSON.stringify(value, null, 2).replaceAll('\n', `\n${' '.repeat(by)}`)

/** In single quotes a shell changes nothing but the quote itself. */
const shellText = (value: unknown): string => `'${JSON.stringify(value, null, 2).replaceAll("'", `'\\''`)}'`

/** A value as Python writes it. */
function pythonText(value: unknown, by: number): string {
  const space = ' '.repeat(by)
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (Array.isArray(value))
    return value.length === 0
      ? '[]'
      : `[\n${value.map(one => `${space}    ${pythonText(one, by + 4)},\n`).join('')}${space}]`
  if (typeof value === 'object') {
    // As in JSON, a member without a value is not there: `None` would be sent as null.
    const members = Object.entries(value).filter(([, one]) => one !== undefined)
    return members.length === 0
      ? '{}'
      : `{\n${members.map(([name, one]) => `${space}    ${JSON.stringify(name)}: ${pythonText(one, by + 4)},\n`).join('')}${space}}`
  }
  // Strings of JSON are strings of Python, but for halves of characters, which no request has.
  return JSON.stringify(value)
}

type Direct = { path: string; body: object }
const directSamples: Record<Exclude<Language, 'workflow'>, (request: SampleRequest, direct: Direct) => string> = {
  curl: ({ origin }, { path, body }) => `curl --silent --show-error --fail-with-body ${origin}${path} \\
  --header "Authorization: Bearer $INFER_TOKEN" \\
  --header 'Content-Type: application/json' \\
  --data ${shellText(body)}
`,
  python: ({ origin }, { path, body }) => `${pythonHead(origin)}
answer = call("POST", "${path}", ${pythonText(body, 0)})
print(json.dumps(answer, indent=2))
`,
  javascript: ({ origin }, { path, body }) => `${javascriptHead(origin)}
const answer = await call('POST', '${path}', ${indented(body, 0)})
console.log(JSON.stringify(answer, null, 2))
`,
}

const jobSamples: Record<Exclude<Language, 'workflow'>, (request: SampleRequest, body: object) => string> = {
  curl: ({ origin }, body) => `# Creates a job, then reads it until it has ended.
id=$(curl --silent --show-error --fail-with-body ${origin}/api/jobs \\
  --header "Authorization: Bearer $INFER_TOKEN" \\
  --header 'Content-Type: application/json' \\
  --data ${shellText(body)} |
  sed 's/.*"id":"\\([^"]*\\)".*/\\1/')
while :; do
  job=$(curl --silent --show-error --fail-with-body "${origin}/api/jobs/$id?wait=60" \\
    --header "Authorization: Bearer $INFER_TOKEN") || exit 1
  case $job in *'"finished_at":null'*) ;; *) break ;; esac
done
printf '%s\\n' "$job"
`,
  python: ({ origin }, body) => `${pythonHead(origin)}
job = call("POST", "/api/jobs", ${pythonText(body, 0)})
while job["status"] in ("pending", "processing"):
    job = call("GET", f"/api/jobs/{job['id']}?wait=60")
print(json.dumps(job["result"] or job["error"], indent=2))
`,
  javascript: ({ origin }, body) => `${javascriptHead(origin)}
let job = await call('POST', '/api/jobs', ${indented(body, 0)})
while (['pending', 'processing'].includes(job.status)) job = await call('GET', \`/api/jobs/\${job.id}?wait=60\`)
console.log(JSON.stringify(job.result ?? job.error, null, 2))
`,
}

const pythonHead = (origin: string) => `import json
import os
import urllib.request

def call(method, path, body=None):
    request = urllib.request.Request(
        "${origin}" + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": "Bearer " + os.environ["INFER_TOKEN"],
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)
`

const javascriptHead = (origin: string) => `async function call(method, path, body) {
  const response = await fetch('${origin}' + path, {
    method,
    headers: {
      Authorization: \`Bearer \${process.env.INFER_TOKEN}\`,
      ...(body && { 'Content-Type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(await response.text())
  return response.json()
}
`

/** JSON is YAML. In a workflow `${` begins a reference, and `$${` is the text. */
const yamlValue = (value: unknown): string => indented(value, 8).replaceAll('${', () => '$${')

/** A whole workflow with this node, or one for each format, to run it as it is or to copy the node from. */
function workflowOf(request: SampleRequest): string {
  const name = request.task.slice(request.task.indexOf('/') + 1)
  const nodes = request.formats?.ratios.map(ratio =>
    nodeOf(`${name}-${ratio.replace(':', '-')}`, { ...request, inputs: { ...request.inputs, aspect_ratio: ratio } }),
  ) ?? [nodeOf(name, request)]
  return `name: ${name}
dag:
  nodes:
${nodes.join('')}`
}

function nodeOf(name: string, { task, model, inputs }: SampleRequest): string {
  const fields = Object.entries(inputs).filter(([, value]) => value !== undefined)
  return `    ${name}:
      model_id: ${JSON.stringify(model)}
      task: ${task}
      inputs:${fields.length === 0 ? ' {}' : fields.map(([field, value]) => `\n        ${JSON.stringify(field)}: ${yamlValue(value)}`).join('')}
`
}
