// Stands in for the header that llama.cpp generates for the files of its web interface: there are none.
#pragma once
#include <string>
#include <vector>

struct llama_ui_asset {
    std::string name;
};

inline const std::vector<llama_ui_asset> & llama_ui_get_assets() {
    static const std::vector<llama_ui_asset> none;
    return none;
}
