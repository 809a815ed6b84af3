"""What the checks of llama.cpp share: the build for this card and the model files, each made at its first use."""

import os
import time

from llama import toolkit
from llama.build import BuildFailed, build_llama, extracted_package
from llama.random_gguf import write_random_gguf
from report import Failed, Skip

# The build must leave time for what is measured with it.
BUILD_SHARE = 0.7
LEAST_BUILD_SECONDS = 60


class Subject:
    def __init__(self, context):
        self.context = context
        self.folder = context.folder("llama")
        self.files = {}
        self.built = None
        self.why_not_built = None

    def check_build(self, check):
        if self.why_not_built is None:
            self._build()
        if self.built is None:
            raise self.why_not_built
        seconds = self.built.seconds
        check.measured(
            f"compiled for {self.built.architecture} in {seconds['compile']:.0f} s on {os.cpu_count()} cores",
            **{f"{step}_seconds": round(took, 2) for step, took in seconds.items()},
            architecture=self.built.architecture,
        )

    def build(self):
        """The build, or None where llama.cpp cannot be built."""
        if self.built is None and self.why_not_built is None:
            self._build()
        return self.built

    def _build(self):
        context = self.context
        self.why_not_built = Skip("llama.cpp was not built")
        try:
            if not os.path.exists(context.sources):
                raise toolkit.Missing("the sources of llama.cpp are not here: npm run gpu:bundle writes them")
            if context.device == "cuda" and context.budget.left() < LEAST_BUILD_SECONDS:
                raise toolkit.Missing(f"a build takes {LEAST_BUILD_SECONDS} s at least, and {context.budget.left():.0f} s are left")
            package = extracted_package(context.infer, context.environment)
            work = os.path.join(self.folder, "work")
            os.makedirs(work)
            limit = BUILD_SHARE * context.budget.left()
            self.built = build_llama(context.sources, package, work, limit, context.environment)
        except toolkit.Missing as missing:
            self.why_not_built = Skip(str(missing))
        except BuildFailed as failed:
            context.report.raw("llama.build.log", failed.log)
            self.why_not_built = Failed(str(failed))

    def environment(self):
        """That of the server and of llama-server: with the build, where there is one."""
        environment = self.context.environment
        if self.build() is None:
            return environment
        path = f"{os.path.dirname(self.built.server)}:{environment.get('PATH', os.defpath)}"
        return {**environment, **self.built.environment, "INFER_BACKENDS_DIR": self.built.backends, "PATH": path}

    def need_card(self):
        """Ends a check as skipped where it needs the card and llama.cpp does not run there."""
        if self.context.device == "cuda" and self.build() is None:
            raise Skip("llama.cpp was not built for this card")

    def model(self, size, kind):
        """Path of a model file with random weights, and the seconds that writing it took."""
        if (size, kind) not in self.files:
            path = os.path.join(self.folder, f"{size}-{kind}.gguf")
            began = time.monotonic()
            write_random_gguf(path, size, kind)
            self.files[size, kind] = path, time.monotonic() - began
        return self.files[size, kind]
