import { openAccounts } from '../../core/accounts/accounts.ts'
import { openStoredKeys } from '../../core/accounts/keys.ts'
import { openLocalOnlyOf } from '../../core/accounts/local-only.ts'
import { openOrganizations } from '../../core/accounts/organizations.ts'
import { openPlans } from '../../core/accounts/plans.ts'
import { openRequesterOf } from '../../core/accounts/requester-of.ts'
import { openSessions } from '../../core/accounts/sessions.ts'
import { openShares } from '../../core/accounts/shares.ts'
import { openTokenLimiter } from '../../core/accounts/token-limiter.ts'
import { openUsageReports } from '../../core/accounts/usage-report.ts'
import { openAdmission } from '../../core/admission/admission.ts'
import { openBodyMemory } from '../../core/admission/body-memory.ts'
import { openRequestLimits } from '../../core/admission/request-limits.ts'
import { openSpend } from '../../core/admission/spend.ts'
import { openBatches } from '../../core/batches/batches.ts'
import { openLineRunner } from '../../core/batches/run-line.ts'
import { collectGarbage } from '../../core/collect-garbage.ts'
import { hostEnvironment, masterKey } from '../../core/config.ts'
import { openConversations } from '../../core/conversations/conversations.ts'
import { openCpu } from '../../core/cpu/cpu.ts'
import { Failure } from '../../core/failure.ts'
import { openFiles } from '../../core/files/files.ts'
import { openJobFallbacks } from '../../core/jobs/job-fallbacks.ts'
import { type Jobs, openJobs } from '../../core/jobs/jobs.ts'
import { openPromptExpansion } from '../../core/jobs/prompt-expansion.ts'
import { openPromptRewriting } from '../../core/jobs/prompt-rewriting.ts'
import { withStepSlots } from '../../core/jobs/step-slots.ts'
import { openDownload } from '../../core/media/fetch.ts'
import { openFfmpeg } from '../../core/media/ffmpeg.ts'
import { openMedia } from '../../core/media/media.ts'
import type { Config } from '../../core/models/config.ts'
import { defaultModels } from '../../core/models/defaults.ts'
import { orNoModel } from '../../core/models/no-model.ts'
import { openPeers } from '../../core/models/peers/peers.ts'
import { quietPause } from '../../core/models/quiet-hours.ts'
import { openRegistry } from '../../core/models/registry.ts'
import { openReload } from '../../core/models/reload.ts'
import { openResponses } from '../../core/responses/responses.ts'
import { openSteadyTime } from '../../core/steady-time.ts'
import { openPreparation } from '../../core/tasks/preparation.ts'
import { openTaskRunner } from '../../core/tasks/run-job.ts'
import { openConversion } from '../../core/tasks/speech/conversion.ts'
import { openWebhooks } from '../../core/webhooks/webhooks.ts'
import { openContent } from '../../core/workflows/content.ts'
import { openDefinitionSnapshots } from '../../core/workflows/definition-snapshots.ts'
import { openExecutions } from '../../core/workflows/executions.ts'
import { nestingOf } from '../../core/workflows/nested-executions.ts'
import { openNodeRunner, openNodeWorks } from '../../core/workflows/node-run.ts'
import { openResultLookup } from '../../core/workflows/result-lookup.ts'
import { openSingleFlight } from '../../core/workflows/single-flight.ts'
import { openWaits } from '../../core/workflows/waits.ts'
import { openWorkflows } from '../../core/workflows/workflows.ts'
import { openCaches } from '../../gpu/caches/caches.ts'
import { openFleet } from '../../gpu/fleet.ts'
import { openKeeperClient } from '../../gpu/launcher/keeper-client.ts'
import { traitsOf } from '../../gpu/presets/presets.ts'
import { probeMachine } from '../../gpu/probe-machine.ts'
import type { FrontWorkOwner } from '../../server/fronts/front-work.ts'
import { openStreams } from '../../server/http/streams/streams.ts'
import { openLoadHistory } from '../../server/metrics/history.ts'
import { openMetrics } from '../../server/metrics/metrics.ts'
import { openThroughput } from '../../server/metrics/throughput.ts'
import { openTimings } from '../../server/metrics/timings.ts'
import { openBatchEndpoints } from '../../server/surfaces/openai/batch-endpoints.ts'
import { openWebhookBodies } from '../../server/webhook-bodies.ts'
import { writeServerFile } from '../client/find-server.ts'
import { openKeptRecords } from '../takeover/kept-records.ts'
import { callsElsewhere } from './calls-elsewhere.ts'
import { openClosing } from './closing.ts'
import { consoleLink } from './console-link.ts'
import { createFirstOrganization } from './first-organization.ts'
import { beginListening } from './listening.ts'
import { openMachineAdministration } from './machine-administration.ts'
import { openInspection } from './open-inspection.ts'
import { serveFronts } from './serve-fronts.ts'
import { type AppOptions, beginStartup, type Startup } from './startup.ts'
import { openTaskRunners } from './task-runners.ts'

/** Composition root: the only function that knows every part. Opens owners in order and closes them in reverse. */
export async function openApp(options: AppOptions, startup: Startup = beginStartup(options)) {
  const { dataDir, drainTimeoutMs, predecessor } = options
  const { path, file, config, log, journal, ended } = startup
  const { limits } = config
  const drainMs = drainTimeoutMs ?? limits.drain_timeout

  // Starts programs and waits for them; the store opens in the meantime.
  const machineProbe = probeMachine(dataDir)
  const https = options.https && { dataDir, files: options.https.files }
  const hasFronts = config.gateway_processes > 1
  const begun = beginListening({ config, dataDir, https, predecessor, needed: [machineProbe, startup.prepared], log })
  const listening = await begun.listening.catch(async thrown => {
    // When another server uses this data directory, store and port are both taken. The store's error explains both.
    if (!predecessor) await startup.store.then(store => store.close())
    throw thrown
  })
  const store = await startup.store.catch(async (thrown: unknown) => {
    await listening?.drain(0)
    throw thrown
  })
  const keptRecords = await openKeptRecords({ dataDir, store, log })
  const keys = openStoredKeys(dataDir, masterKey())
  const steady = openSteadyTime(dataDir)
  const plans = openPlans({ configured: config.plans, changed: () => void limitPlans(), log })
  const limitPlans = () =>
    store.spend
      .limitPlans(plans.spendLimits())
      .catch((thrown: unknown) => log.warn('The spend limits of the plans are not known to the store', {}, thrown))
  await limitPlans()
  const sessions = openSessions({ store, log })
  const accounts = openAccounts({ store, keys, plans, sessions, log, changed: () => frontWork?.forgetCallers() })
  let frontWork: FrontWorkOwner | undefined
  const machine = await machineProbe
  const keeper = await openKeeperClient({ dataDir, key: keys.keeper, graceMs: limits.adopt_grace, log })
  const keptEngines = keeper.engines()
  const caches = openCaches({
    keptEngines,
    dataDir,
    key: keys.caches,
    settings: config.caches,
    machineBytes: machine.devices.cpu.totalBytes,
    log,
  })
  const organizations = openOrganizations({
    store,
    log,
    planNames: () => plans.names(),
    changed: () => accounts.forgetVerified(),
    forget: id => caches.forget(id),
  })
  const firstStart = await createFirstOrganization(dataDir, store, accounts)
  const registry = openRegistry({ ...config, defaults: defaultModels, traits: traitsOf })
  const peers = openPeers({ dataDir, config, environment: hostEnvironment(), registry, log })
  const timings = openTimings()
  // Opened before any engine starts: it removes the folders that engines of an earlier run shared with the server.
  const files = await openFiles({
    dataDir,
    store,
    linkKey: keys.links,
    limits,
    limitsOf: id => accounts.limitsOf(id),
    shared: predecessor !== undefined,
    log,
    keptEngines,
  })
  let { gpu, pools } = config
  const engines = await openFleet({
    models: registry.all,
    quiet: () => gpu.quiet.map(quietPause),
    dataDir,
    bootId: store.recovery.bootId,
    ...(await predecessor?.engines()),
    machine,
    keeper: keeper.isUsed() ? keeper : undefined,
    caches,
    secrets: [path, ...(options.https?.files ? [options.https.files.key] : [])],
    log,
    limits,
    ownDevices: config.devices,
    pools: () => pools,
    onLoaded: (modelId, ms) => timings.record('load', modelId, ms),
  })
  const fleet = peers.seenBy(engines)
  predecessor?.reached('fleet')
  const applied = (next: Config) => {
    ;({ gpu, pools } = next)
    peers.configure(next)
    frontWork?.modelsChanged()
  }
  const reload = openReload({ path, config: file, check: traitsOf, registry, plans, caches, fleet, applied, log })
  peers.follow(() => (frontWork?.modelsChanged(), fleet.reconfigured()))
  const threads = openCpu()
  const cpu = { ...threads, ...openPreparation(threads), ...openResultLookup(threads) }
  const throughput = openThroughput()
  const ffmpeg = openFfmpeg({ ...config.media, environment: hostEnvironment() })
  const media = openMedia({ config, store, files, cpu, ffmpeg, log })
  const download = openDownload({ media: config.media, log })
  const conversion = openConversion({ cpu, ffmpeg })
  const shares = openShares({ store: store.organizations, plans, log })
  await Promise.all([shares.read(), organizations.watch()])
  const snapshots = openDefinitionSnapshots(store.executions)
  const content = openContent({ files, store: store.files, publicUrl: config.public_url })
  const tokenLimiter = openTokenLimiter()
  const spend = await openSpend({ store, plans, currency: config.currency, log })
  const toFronts = { hasFronts, changed: (id: string) => frontWork?.creditsChanged(id) }
  const { limiter, credits } = openRequestLimits({ tokenLimiter, spend, ...toFronts })
  const admission = openAdmission({
    registry,
    tokenLimiter,
    spend,
    localOnlyOf: openLocalOnlyOf({ tokens: store.tokens, plans }),
    bodies: openBodyMemory(limits.held_bodies, collectGarbage),
    batchPriceFactor: config.batch_price_factor,
    // Refers to jobs, which are opened below because they need admission.
    room: {
      records: () => jobs.recorder.requireRoom(),
      queue: model => jobs.calls.requireRoom(model),
      machine(model, task) {
        const missing = fleet.missing(model, task)
        if (missing !== null) throw new Failure('no_capacity', missing, { final: true })
      },
    },
  })
  const used: typeof throughput.used = (...all) => throughput.used(...all)
  const works = openNodeWorks({ snapshots, admission, cpu, content })
  const flight = openSingleFlight(store.executions)
  const requesterOf = openRequesterOf({ store, plans })
  const waits = openWaits({ store, key: keys.waits, log })
  const jobs: Jobs = openJobs({
    fallbackOf: openJobFallbacks({
      registry,
      admission,
      requesterOf,
      spend,
      log,
      etaMs: id => jobs.queueForecast(id).etaMs,
    }),
    store,
    fleet: withStepSlots(fleet),
    models: { find: orNoModel(registry.find) },
    weightOf: id => shares.of(id),
    used: (tokenId, { inputTokens, outputTokens }) => tokenLimiter.used(tokenId, inputTokens + outputTokens),
    mayBegin: admission.requireStillLocal,
    suspended: () => organizations.suspended,
    steady,
    // Refers to the owner that is opened below because it needs jobs.
    deferred: job => expansion.add(job),
    spend,
    elsewhere: hasFronts ? callsElsewhere(() => frontWork?.elsewhere) : undefined,
    holdMs: limits.hold_max,
    log,
    run: openNodeRunner({
      admission,
      works,
      flight,
      store: store.executions,
      // The executions are opened below, because they need jobs.
      runWorkflow: running => executions.runWorkflow(running),
      snapshots,
      media,
      run: openLineRunner({
        store,
        registry,
        media,
        run: openTaskRunner(
          openTaskRunners({ registry, cpu, media, files, ffmpeg, conversion, download, limits, waits, log }),
          used,
          config.batch_price_factor,
        ),
      }),
    }),
  })
  const rewriting = openPromptRewriting({
    cpu,
    media,
    registry,
    limits,
    instructions: config.prompt_rewriting?.instructions,
    used,
  })
  const { model } = config.prompt_rewriting ?? {}
  const expansion = openPromptExpansion({ jobs, admission, requesterOf, rewriting, model, log })
  await expansion.resume()
  const nesting = nestingOf({ store, requesterOf, admission, registry, cpu })
  const executions = openExecutions({ store, jobs, admission, snapshots, works, flight, nesting, fleet, log })
  waits.start()
  await executions.resume()
  const batches = openBatches({
    store,
    jobs,
    admission,
    registry,
    files,
    cpu,
    endpoints: openBatchEndpoints({ registry, files }),
    requesterOf,
    config,
    log,
  })
  await batches.resume()
  const workflows = openWorkflows({ store, executions })
  const render = openWebhookBodies({ cpu, executions, files, jobs, waits }, () => config.public_url ?? server.url)
  const webhooks = openWebhooks({ store, keys, config: config.webhooks, render, log })
  const streams = openStreams({ pingMs: config.limits.stream_ping, writeDeadlineMs: config.limits.write_deadline })
  const fronts = () => frontWork?.counts() ?? { requests: 0, messages: 0 }
  const metrics = openMetrics({ store, fleet, jobs, streams, reload, throughput, timings, webhooks, peers, fronts })
  const history = openLoadHistory({ used: () => store.stats().used, throughput })
  const inspection = openInspection({ dataDir, configPath: path, config, file, reload })
  const administration = openMachineAdministration({ dataDir, config: path, configured: registry.all, log })
  const flushUses = () => Promise.all([accounts.flushUses(), sessions.flush()])
  const flushing = setInterval(() => void flushUses(), 10_000).unref()

  const server = listening ?? (await begun.listen())
  await server.takenOver()
  const counted = { tokenLimiter, metrics, timings, throughput }
  server.serve({
    config,
    store,
    accounts,
    sessions,
    organizations,
    limiter,
    plans,
    usage: openUsageReports({ store, currency: config.currency, spendOf: spend.ofOrganization }),
    registry,
    peers,
    reload,
    ...administration.owners,
    fleet,
    jobs,
    conversations: openConversations({ store, key: keys.conversationLinks }),
    responses: openResponses({ store, jobs, retentionMs: config.limits.response_retention }),
    rewriting,
    executions,
    waits,
    workflows,
    batches,
    webhooks,
    cpu,
    conversion,
    files,
    media,
    streams,
    ...counted,
    history,
    journal,
    inspection,
    admission,
    spend,
    steady,
    log,
  })
  frontWork =
    credits &&
    serveFronts(server, { config, store, registry, accounts, admission, jobs, fleet, credits, log, ...counted })
  writeServerFile(dataDir, server)
  await predecessor?.serving({ store, spend, jobs, batches, fleet }, server, log)
  log.info('Ready', { url: server.url, models: registry.all().length, requeued: store.recovery.requeued })

  const { close, openTakeover } = openClosing({
    dataDir,
    server,
    store,
    spend,
    jobs,
    fleet,
    log,
    before: predecessor?.gone,
    drainMs,
    flushing,
    timers: [keptRecords, peers, throughput, history, inspection, reload, administration],
    executions,
    expansion,
    background: [executions, waits, organizations, batches],
    webhooks,
    caches,
    flushUses,
    files,
    cpu,
    closed: exitCode => ended.resolve({ exitCode }),
  })

  return {
    url: server.url,
    /** All base addresses under which the server is reached, `url` first. */
    urls: server.urls,
    /** Set when this start created the data directory's first organization. */
    firstStart,
    /** The address that the operator has set for clients. */
    publicUrl: config.public_url,
    /** Address that opens the console signed in as the root token, once; undefined without a console or that token. */
    consoleLink: (base = server.url): string | undefined => consoleLink(dataDir, base, { accounts, config, sessions }),
    models: registry.all().map(({ id, tasks, description }) => ({ id, tasks, description })),
    /** Settles when the server has stopped: after `close`, or after an error that it could not survive. */
    stopped: ended.promise,
    /**
     * Reads infer.yaml again and offers the models that it lists now, and reads the certificate again. Logs what is wrong
     * with either. Never rejects.
     */
    async reload(): Promise<void> {
      try {
        if (https) {
          server.reloadCertificate()
          writeServerFile(dataDir, server)
        }
      } catch (cause) {
        log.error('Reading the certificate again failed, so the previous one stays in use', {}, cause)
      }
      await reload.reload()
    },
    close,
    openTakeover,
  }
}
export type App = Awaited<ReturnType<typeof openApp>>
