import { readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Plugin } from 'esbuild'
import { zodMakesShapesWhenRead } from './shapes-when-read.ts'

const packages = realpathSync(join(import.meta.dirname, '../node_modules'))

/** Changes expressions of a package's file. Fails the build when one of them is not there exactly once. */
export function patch(file: string, ...changes: (readonly [from: string, to: string])[]): Plugin {
  const path = join(packages, file)
  return {
    name: `patch ${file}`,
    setup(build): void {
      build.onLoad({ filter: new RegExp(`/${file.replaceAll('.', '\\.')}$`) }, () => {
        const source = readFileSync(path, 'utf8')
        const missing = changes.find(([from]) => source.split(from).length !== 2)
        if (missing) throw new Error(`${file} no longer holds exactly once: ${missing[0]}. See bin/README.md.`)
        const contents = changes.reduce((text, [from, to]) => text.replace(from, () => to), source)
        return { contents, loader: 'js', resolveDir: dirname(path) }
      })
    },
  }
}

/** A package's file, whole, as something smaller that has what is used of it. */
function instead(filter: RegExp, contents: string): Plugin {
  return {
    name: `instead of ${filter.source}`,
    setup(build): void {
      build.onLoad({ filter }, ({ path }) => ({ contents, loader: 'js', resolveDir: dirname(path) }))
    },
  }
}

const notInBundle = (name: string): string => `throw new Error('${name} is not in the bundle: bin/bundle.ts')`

/**
 * What is bundled lies in memory whole and is run whole, with what it loads of Node; what nobody uses of large packages
 * stays out. Together 10 MB of 140 at rest.
 */
export const onlyWhatIsUsed: Plugin[] = [
  // Its clients, without a second `fetch`, a cache, mocks and WebSockets: 800 kB.
  instead(
    /\/undici\/index\.js$/,
    `import Dispatcher from './lib/dispatcher/dispatcher.js'
    import api from './lib/api/index.js'
    Object.assign(Dispatcher.prototype, api)
    export { default as Agent } from './lib/dispatcher/agent.js'
    export { default as Client } from './lib/dispatcher/client.js'
    export { default as EnvHttpProxyAgent } from './lib/dispatcher/env-http-proxy-agent.js'
    export { getGlobalDispatcher, setGlobalDispatcher } from './lib/global.js'
    export { default as buildConnector } from './lib/core/connect.js'`,
  ),
  // No connection of ours speaks HTTP/2 (`allowH2: false`), of which Node's own part is large.
  instead(/\/undici\/lib\/dispatcher\/client-h2\.js$/, `module.exports = () => { ${notInBundle('HTTP/2')} }`),
  // Without pushing to a gateway, which loads TLS, and without adding up a cluster's processes.
  instead(
    /\/prom-client\/index\.js$/,
    `export { default as Registry } from './lib/registry.js'
    export { default as Counter } from './lib/counter.js'
    export { default as Gauge } from './lib/gauge.js'
    export { default as Histogram } from './lib/histogram.js'
    export { default as collectDefaultMetrics } from './lib/defaultMetrics.js'`,
  ),
  // Its `Request`, `Response` and URL, with what they load of Node (`fetch` and HTTP/2): our events have none.
  instead(
    /\/srvx\/dist\/adapters\/node\.mjs$/,
    `const absent = () => { ${notInBundle('srvx')} }
    export { absent as FastResponse, absent as FastURL, absent as serve, absent as toNodeHandler }`,
  ),
  patch('h3/dist/response.mjs', [`var FrozenHeaders = class extends Headers {`, `var FrozenHeaders = class {`]),
  // Only a new self-signed certificate needs node-forge (390 kB), and no warning of listhen's is to be had with our
  // options, so that it needs no consola either.
  patch(
    'listhen/dist/shared/listhen.tqe5I1Rl.mjs',
    [
      `import forge from 'node-forge';`,
      `const forge = {
        get asn1() { return require('node-forge').asn1 },
        get md() { return require('node-forge').md },
        get pkcs12() { return require('node-forge').pkcs12 },
        get pki() { return require('node-forge').pki },
      };`,
    ],
    // Only HTTPS needs TLS.
    [
      `import { createServer } from 'node:https';`,
      `const createServer = (...given) => require('node:https').createServer(...given);`,
    ],
    [`import consola$1, { consola } from 'consola';`, `const consola$1 = console, consola = console;`],
  ),
  instead(/\/listhen\/dist\/index\.mjs$/, `export { l as listen } from './shared/listhen.tqe5I1Rl.mjs'`),
  // Follows every request for a way of closing that is not used: drain has its own. Loads TLS.
  instead(/\/http-shutdown\/index\.js$/, `export default server => server`),
  // Features of listhen that infer does not use: tunnels, the clipboard, WebSockets, a browser: 100 kB.
  instead(/\/untun\/dist\/index\.mjs$/, notInBundle('untun')),
  instead(/\/tinyclip\/dist\/index\.js$/, notInBundle('tinyclip')),
  instead(/\/crossws\/dist\/adapters\/node\.mjs$/, notInBundle('crossws')),
  instead(/\/listhen\/dist\/chunks\/xdg-open\.mjs$/, notInBundle('xdg-open')),
  // Its messages in English, without 50 other languages: 400 kB.
  instead(/\/zod\/v4\/locales\/index\.js$/, `export { default as en } from './en.js'`),
  // The kinds that a schema is of, once for all schemas of a class instead of once for each of 4,200.
  patch(
    'zod/v4/core/core.js',
    ['    function _(def) {\n', '    let traits;\n    function _(def) {\n'],
    [
      '        const deferred = inst._zod.deferred;\n',
      `        traits ??= inst._zod.traits;
        if (traits.size === inst._zod.traits.size) inst._zod.traits = traits;
        const deferred = inst._zod.deferred;\n`,
    ],
  ),
  // Describes a new schema in place: the copies of 900 described schemas took 4.7 MB resident.
  patch(
    'zod/v4/classic/schemas.js',
    [
      'describe(description) {\n        const cl = this.clone();',
      'describe(description) {\n        const cl = core.globalRegistry.has(this) ? this.clone() : this;',
    ],
    ...zodMakesShapesWhenRead,
  ),
]
