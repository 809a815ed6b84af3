from _checks import run, token, url
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI

set_tracing_disabled(True)


async def answers(kind):
    async with AsyncOpenAI(base_url=f"{url}/std/v1", api_key=token, max_retries=0) as client:
        agent = Agent(name="helper", instructions="Be brief.", model=kind(model="fake", openai_client=client))
        assert (await Runner.run(agent, "Hello")).final_output
        streamed = Runner.run_streamed(agent, "Hello")
        async for _ in streamed.stream_events():
            pass
        assert streamed.final_output


async def check_chat_completions():
    await answers(OpenAIChatCompletionsModel)


async def check_responses():
    await answers(OpenAIResponsesModel)


run()
